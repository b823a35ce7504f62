// The matrix's server, by the official TypeScript SDK 1.x: `node v1-server.mjs stdio|http`. It has sessions only.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
    CompleteRequestSchema,
    ListResourcesRequestSchema,
    SubscribeRequestSchema,
    UnsubscribeRequestSchema
} from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod/v4';

import { PAGE, names, notes, paged, waitFor, waits } from './offer.mjs';

function build() {
    const capabilities = { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, completions: {} };
    const server = new McpServer({ name: 'ts1-interop', version: '1.0.0' }, { capabilities });
    const text = text => ({ content: [{ type: 'text', text }] });
    const tool = (name, inputSchema, call) => server.registerTool(name, { inputSchema }, call);

    const sum = { inputSchema: { a: z.number().int(), b: z.number().int() }, outputSchema: { sum: z.number().int() } };
    server.registerTool('add', sum, async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }));
    tool('steps', { n: z.number().int() }, async ({ n }, cx) => {
        const progressToken = cx._meta?.progressToken;
        for (let progress = 1; progressToken !== undefined && progress <= n; progress++) {
            await cx.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: n } });
        }
        return text('done');
    });
    tool('ask', { question: z.string() }, async ({ question }, cx) => {
        const requestedSchema = { type: 'object', properties: { copies: { type: 'integer' } }, required: ['copies'] };
        const answer = await server.server.elicitInput({ message: question, requestedSchema }, { relatedRequestId: cx.requestId });
        return text(answer.action === 'accept' ? `accepted ${answer.content.copies}` : 'declined');
    });
    tool('sample', { topic: z.string() }, async ({ topic }, cx) => {
        const messages = [{ role: 'user', content: { type: 'text', text: topic } }];
        const answer = await server.server.createMessage({ messages, maxTokens: 20 }, { relatedRequestId: cx.requestId });
        return text(`model said ${answer.content.text}`);
    });
    tool('wait', {}, async (_, cx) => text(await waitFor(cx.signal)));
    tool('waits', {}, async () => text(waits()));
    tool('touch', {}, async () => {
        await server.server.sendResourceUpdated({ uri: 'note://1' });
        return text('touched');
    });
    let extra;
    tool('grow', {}, async () => {
        if (extra) {
            extra.remove();
            extra = undefined;
        } else {
            extra = tool('extra', {}, async () => text('here for now'));
        }
        return text('changed');
    });

    for (const { uri, name, body } of notes) {
        server.registerResource(name, uri, {}, async () => ({ contents: [{ uri, text: body }] }));
    }
    server.registerPrompt('greet', { argsSchema: { name: z.string() } }, ({ name }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Say hello to ${name}.` } }]
    }));
    // Below the convenience: it has neither pages nor subscriptions.
    server.server.setRequestHandler(ListResourcesRequestSchema, async request => paged(request.params?.cursor, PAGE));
    server.server.setRequestHandler(SubscribeRequestSchema, async () => ({}));
    server.server.setRequestHandler(UnsubscribeRequestSchema, async () => ({}));
    server.server.setRequestHandler(CompleteRequestSchema, async request => ({ completion: { values: names(request.params.argument.value) } }));
    return server;
}

if (process.argv[2] === 'http') {
    const sessions = new Map();
    const listener = createServer(async (request, response) => {
        let transport = sessions.get(request.headers['mcp-session-id']);
        if (!transport) {
            transport = new StreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                onsessioninitialized: id => sessions.set(id, transport)
            });
            await build().connect(transport);
        }
        await transport.handleRequest(request, response);
    });
    listener.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
} else {
    await build().connect(new StdioServerTransport());
}
