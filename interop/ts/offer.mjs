// What the servers of both generations offer alike.
export const PAGE = 3;
export const notes = Array.from({ length: 7 }, (_, n) => ({ uri: `note://${n}`, name: `note ${n}`, body: `This is note ${n}.` }));
export const names = typed => ['ada', 'alan', 'grace'].filter(name => name.startsWith(typed));

export function paged(cursor, size) {
    const start = Number(cursor ?? 0);
    const next = start + size;
    const resources = notes.slice(start, next).map(({ uri, name }) => ({ uri, name }));
    return next < notes.length ? { resources, nextCursor: String(next) } : { resources };
}

let started = 0;
let cancelled = 0;
export const waits = () => `${started} ${cancelled}`;

/** Waits until the signal comes, or for half a minute. */
export function waitFor(signal) {
    started++;
    return new Promise(resolve => {
        const timer = setTimeout(() => resolve('nobody cancelled'), 30_000);
        signal.addEventListener('abort', () => {
            cancelled++;
            clearTimeout(timer);
            resolve('cancelled');
        });
    });
}
