// The matrix's client, by the official TypeScript SDK 1.x: `node v1-client.mjs session|auto URL|PROGRAM…`. It has sessions
// only, so it chooses nothing.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';

import { Ear, answerForm, answerModel, ask, capabilities } from './cells.mjs';

const [era, ...place] = process.argv.slice(2);
const client = new Client({ name: 'ts1-interop', version: '1.0.0' }, { capabilities });
client.setRequestHandler(ElicitRequestSchema, answerForm);
client.setRequestHandler(CreateMessageRequestSchema, answerModel);
const ear = new Ear();
for (const schema of [ToolListChangedNotificationSchema, ResourceUpdatedNotificationSchema]) {
    client.setNotificationHandler(schema, ({ method, params }) => ear.hear(method, params));
}
let revision;

await ask(client, ear, {
    connect: async () => {
        if (era === 'stateless') throw new Error('it has sessions only');
        const transport = place[0].startsWith('http')
            ? new StreamableHTTPClientTransport(new URL(place[0]))
            : new StdioClientTransport({ command: place[0], args: place.slice(1), stderr: 'inherit' });
        transport.setProtocolVersion = (set => version => {
            revision = version;
            set?.call(transport, version);
        })(transport.setProtocolVersion);
        await client.connect(transport);
    },
    revision: () => revision,
    call: (name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options),
    firstPage: () => client.listResources(),
    watch: async uri => {
        if (uri) await client.subscribeResource({ uri });
        return async () => uri && client.unsubscribeResource({ uri });
    }
});
