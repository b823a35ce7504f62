// What the clients of both generations ask for, a cell each. Prints a line of JSON for each.
import assert from 'node:assert/strict';

const PATIENCE = 10_000;
const tell = line => console.log(JSON.stringify(line));
const pause = (time = 20) => new Promise(go => setTimeout(go, time));
const within = promise => Promise.race([promise, pause(PATIENCE).then(() => assert.fail(`nothing within ${PATIENCE} ms`))]);

export const capabilities = { elicitation: { form: {} }, sampling: {} };
export const answerForm = async request =>
    request.params.message === 'no' ? { action: 'decline' } : { action: 'accept', content: { copies: 2 } };
export const answerModel = async () => ({ role: 'assistant', model: 'none', content: { type: 'text', text: 'pong' } });

/** Notifications, and those who wait for one. */
export class Ear {
    #waiting = new Set();

    hear(method, params) {
        for (const one of this.#waiting) if (one.wants(method, params)) one.go();
    }

    next(wants) {
        return new Promise(go => this.#waiting.add({ wants, go }));
    }
}

function equal(found, wanted) {
    const [is, should] = [found, wanted].map(value => JSON.stringify(value));
    if (is !== should) throw new Error(`${is} instead of ${should}`);
    return is;
}

/**
 * Opens a connection and asks for everything. The generations differ in `connect`, in `revision`, in how `call` takes its
 * options, in how to get the `firstPage` alone, and in how to `watch` a resource, if one is named, and the lists: that returns
 * a function that ends it.
 */
export async function ask(client, ear, { connect, revision, call, firstPage, watch }) {
    try {
        await within(connect());
        tell({ cell: 'open', ok: revision() });
    } catch (error) {
        tell({ cell: 'open', error: String(error.message) });
        process.exit();
    }
    const text = async (name, args) => (await call(name, args)).content.map(block => block.text).join('');
    const waits = async () => (await text('waits')).split(' ').map(Number);
    const everyTool = async () => {
        const names = [];
        let cursor;
        do {
            const page = await client.listTools(cursor === undefined ? undefined : { cursor }, { cacheMode: 'refresh' });
            names.push(...page.tools.map(tool => tool.name));
            cursor = page.nextCursor;
        } while (cursor !== undefined);
        return names;
    };
    const hasExtra = async () => (await everyTool()).includes('extra');
    const cells = {
        list: async () => {
            const names = await everyTool();
            for (const name of ['add', 'steps', 'ask', 'sample']) assert(names.includes(name), `${name} is not among ${names}`);
            return `${names.length} tools`;
        },
        call: async () => equal((await call('add', { a: 2, b: 3 })).structuredContent, { sum: 5 }),
        // Either way of saying no is right; a result is not.
        'bad-arguments': async () => {
            const found = await call('add', { a: 'two', b: 3 }).then(result => result.isError === true, error => error.code);
            return found === true ? "the tool's error" : equal(found, -32602);
        },
        progress: async () => {
            const seen = [];
            await call('steps', { n: 3 }, { onprogress: ({ progress, total }) => seen.push([progress, total]) });
            return equal(seen, [[1, 3], [2, 3], [3, 3]]);
        },
        answer: async () => equal(await text('ask', { question: 'yes' }), 'accepted 2'),
        decline: async () => equal(await text('ask', { question: 'no' }), 'declined'),
        sample: async () => equal(await text('sample', { topic: 'hi' }), 'model said pong'),
        cancel: async () => {
            const [started, cancelled] = await waits();
            const abort = new AbortController();
            const ended = call('wait', {}, { signal: abort.signal }).then(() => 'a result', () => 'cancelled');
            while ((await waits())[0] === started) await pause();
            abort.abort();
            while ((await waits())[1] === cancelled) await pause();
            return equal(await ended, 'cancelled');
        },
        read: async () => equal((await client.readResource({ uri: 'note://1' })).contents[0].text, 'This is note 1.'),
        update: async () => {
            const told = ear.next((method, params) => method === 'notifications/resources/updated' && params.uri === 'note://1');
            const unwatch = await watch('note://1');
            await call('touch');
            await told;
            await unwatch();
            return 'told';
        },
        change: async () => {
            const before = await hasExtra();
            const told = ear.next(method => method === 'notifications/tools/list_changed');
            const unwatch = await watch();
            await call('grow');
            await told;
            await unwatch();
            return equal(await hasExtra(), !before);
        },
        complete: async () => {
            const ref = { type: 'ref/prompt', name: 'greet' };
            return equal((await client.complete({ ref, argument: { name: 'name', value: 'a' } })).completion.values, ['ada', 'alan']);
        },
        pages: async () => {
            let page = await firstPage();
            const pages = [page.resources.length];
            while (page.nextCursor !== undefined) {
                page = await client.listResources({ cursor: page.nextCursor });
                pages.push(page.resources.length);
            }
            return equal(pages, [3, 3, 1]);
        }
    };
    for (const [cell, ask] of Object.entries(cells)) {
        try {
            tell({ cell, ok: await within(ask()) });
        } catch (error) {
            tell({ cell, error: String(error.message) });
        }
    }
    await Promise.race([client.close(), pause(2000)]).catch(() => {});
    process.exit();
}
