// The matrix's client, by the official TypeScript SDK 2.x: `node v2-client.mjs session|stateless|auto URL|PROGRAM…`.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import * as z from 'zod/v4';

import { Ear, answerForm, answerModel, ask, capabilities } from './cells.mjs';

const [era, ...place] = process.argv.slice(2);
const mode = { session: 'legacy', stateless: { pin: '2026-07-28' }, auto: 'auto' }[era];
const client = new Client({ name: 'ts2-interop', version: '1.0.0' }, { capabilities, versionNegotiation: { mode } });
client.setRequestHandler('elicitation/create', answerForm);
client.setRequestHandler('sampling/createMessage', answerModel);
const ear = new Ear();
for (const method of ['notifications/tools/list_changed', 'notifications/resources/updated']) {
    client.setNotificationHandler(method, ({ params }) => ear.hear(method, params));
}
const isStateless = () => client.getProtocolEra() === 'modern';
const Page = z.object({ resources: z.array(z.object({ uri: z.string() })), nextCursor: z.string().optional() });

await ask(client, ear, {
    connect: () =>
        client.connect(
            place[0].startsWith('http')
                ? new StreamableHTTPClientTransport(new URL(place[0]))
                : new StdioClientTransport({ command: place[0], args: place.slice(1), stderr: 'inherit' })
        ),
    revision: () => client.getNegotiatedProtocolVersion(),
    call: (name, args = {}, options) => client.callTool({ name, arguments: args }, options),
    // `listResources` without a cursor fetches all pages.
    firstPage: () => client.request({ method: 'resources/list', params: {} }, Page),
    watch: async uri => {
        if (isStateless()) {
            const subscription = await client.listen(uri ? { resourceSubscriptions: [uri] } : { toolsListChanged: true });
            return () => subscription.close();
        }
        if (uri) await client.subscribeResource({ uri });
        return async () => uri && client.unsubscribeResource({ uri });
    }
});
