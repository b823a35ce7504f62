// The matrix's server, by the official TypeScript SDK 2.x: `node v2-server.mjs stdio|http`. Serves both eras.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler, inputRequired, inputResponse, isLegacyRequest } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';

import { PAGE, notes, names, paged, waitFor, waits } from './offer.mjs';

const Order = z.object({ copies: z.number().int() });
// An instance serves one request, one session or one pipe: what outlives it is here.
let grown = false;
// How the clients of other instances are told: over HTTP without sessions nobody else could.
let notifier;

function build() {
    const capabilities = { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, completions: {} };
    const server = new McpServer({ name: 'ts2-interop', version: '1.0.0' }, { capabilities });
    const text = text => ({ content: [{ type: 'text', text }] });
    const tool = (name, shape, call) => server.registerTool(name, { inputSchema: z.object(shape) }, call);

    const sum = { inputSchema: z.object({ a: z.number().int(), b: z.number().int() }), outputSchema: z.object({ sum: z.number().int() }) };
    server.registerTool('add', sum, async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }));
    tool('steps', { n: z.number().int() }, async ({ n }, cx) => {
        const progressToken = cx.mcpReq._meta?.progressToken;
        for (let progress = 1; progressToken !== undefined && progress <= n; progress++) {
            await cx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: n } });
        }
        return text('done');
    });
    // One handler for both eras: for sessions the SDK makes requests of what is required.
    tool('ask', { question: z.string() }, async ({ question }, cx) => {
        const answer = inputResponse(cx.mcpReq.inputResponses, 'order');
        if (answer.kind === 'missing') {
            return inputRequired({ inputRequests: { order: inputRequired.elicit({ message: question, requestedSchema: Order }) } });
        }
        return text(answer.action === 'accept' ? `accepted ${Order.parse(answer.content).copies}` : 'declined');
    });
    tool('sample', { topic: z.string() }, async ({ topic }, cx) => {
        const answer = inputResponse(cx.mcpReq.inputResponses, 'answer');
        if (answer.kind === 'missing') {
            const messages = [{ role: 'user', content: { type: 'text', text: topic } }];
            return inputRequired({ inputRequests: { answer: inputRequired.createMessage({ messages, maxTokens: 20 }) } });
        }
        return text(`model said ${answer.result.content.text}`);
    });
    tool('wait', {}, async (_, cx) => text(await waitFor(cx.mcpReq.signal)));
    tool('waits', {}, async () => text(waits()));
    tool('touch', {}, async () => {
        if (notifier) notifier.resourceUpdated('note://1');
        await server.server.sendResourceUpdated({ uri: 'note://1' }).catch(() => {});
        return text('touched');
    });
    let extra;
    const grow = () => (extra = tool('extra', {}, async () => text('here for now')));
    if (grown) grow();
    tool('grow', {}, async () => {
        grown = !grown;
        if (grown) grow();
        else extra.remove();
        if (notifier) notifier.toolsChanged();
        return text('changed');
    });

    for (const { uri, name, body } of notes) {
        server.registerResource(name, uri, {}, async () => ({ contents: [{ uri, text: body }] }));
    }
    server.registerPrompt('greet', { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Say hello to ${name}.` } }]
    }));
    // Below the convenience: it has neither pages nor subscriptions.
    server.server.setRequestHandler('resources/list', async request => paged(request.params?.cursor, PAGE));
    server.server.setRequestHandler('resources/subscribe', async () => ({}));
    server.server.setRequestHandler('resources/unsubscribe', async () => ({}));
    server.server.setRequestHandler('completion/complete', async request => ({ completion: { values: names(request.params.argument.value) } }));
    return server;
}

if (process.argv[2] === 'http') {
    const handler = createMcpHandler(build, { legacy: 'reject' });
    notifier = handler.notify;
    const stateless = toNodeHandler(handler);
    const sessions = new Map();
    const listener = createServer(async (request, response) => {
        const chunks = [];
        for await (const chunk of request) chunks.push(chunk);
        const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
        if (!(await isLegacyRequest(await toWebRequest(request, body)))) return stateless(request, response, body);
        let transport = sessions.get(request.headers['mcp-session-id']);
        if (!transport) {
            transport = new NodeStreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                onsessioninitialized: id => sessions.set(id, transport)
            });
            await build().connect(transport);
        }
        await transport.handleRequest(request, response, body);
    });
    listener.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
} else {
    serveStdio(build);
}
