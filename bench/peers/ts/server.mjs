// The TypeScript SDK's server of the comparison: `server stdio`, or `server http`, which says its address in one line.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';

// Made once: an instance of the server serves one session, or one request without one.
const Echo = z.object({ text: z.string().describe('text to echo') });
const Add = z.object({ a: z.number().describe('first number'), b: z.number().describe('second number') });
const Trivial = z.object({ value: z.string().describe('a value') });
const Nothing = z.object({});
const Sure = z.object({ ok: z.boolean() });

const text = text => ({ content: [{ type: 'text', text }] });

function build() {
    const server = new McpServer({ name: 'bench', version: '1.0.0' });
    const tool = (name, description, inputSchema, call) => server.registerTool(name, { description, inputSchema }, call);
    tool('echo', 'Echo the text back', Echo, async args => text(args.text));
    tool('add', 'Add two numbers', Add, async ({ a, b }) => text(String(a + b)));
    tool('progress', 'Tell of ten steps', Nothing, async (_, cx) => {
        const progressToken = cx.mcpReq._meta?.progressToken;
        for (let progress = 1; progressToken !== undefined && progress <= 10; progress++) {
            await cx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 10 } });
        }
        return text('done');
    });
    // One way to ask for both eras: in a session the SDK makes a request of it.
    tool('confirm', 'Ask whether to go on', Nothing, async (_, cx) => {
        const answer = inputResponse(cx.mcpReq.inputResponses, 'sure');
        if (answer.kind === 'missing') {
            return inputRequired({ inputRequests: { sure: inputRequired.elicit({ message: 'Go on?', requestedSchema: Sure }) } });
        }
        return text(answer.content?.ok === true ? 'yes' : 'no');
    });
    for (let n = 0; n < 100; n++) {
        tool(`tool_${String(n).padStart(3, '0')}`, `Trivial tool number ${n}`, Trivial, async ({ value }) => text(value));
    }
    server.registerResource('note', 'bench://note', {}, async () => ({ contents: [{ uri: 'bench://note', text: 'A note.' }] }));
    return server;
}

switch (process.argv[2]) {
    case 'stdio':
        serveStdio(build);
        break;
    case 'http': {
        const stateless = toNodeHandler(createMcpHandler(build, { legacy: 'reject' }));
        const sessions = new Map();
        const listener = createServer(async (request, response) => {
            // By the header, as the clients here have it: to look into the body would be to read it twice.
            if (request.headers['mcp-protocol-version'] === '2026-07-28') return stateless(request, response);
            let transport = sessions.get(request.headers['mcp-session-id']);
            if (!transport) {
                transport = new NodeStreamableHTTPServerTransport({
                    sessionIdGenerator: randomUUID,
                    onsessioninitialized: id => sessions.set(id, transport)
                });
                await build().connect(transport);
            }
            await transport.handleRequest(request, response);
        });
        listener.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${listener.address().port}`));
        break;
    }
    default:
        console.error('say `http` or `stdio`');
        process.exit(1);
}
