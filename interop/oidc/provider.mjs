// An authorization server that is not ours: `node provider.mjs` serves it on a port of its own choice, and its first
// line says where its clients and switches can be read.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';

import { Provider, errors } from 'oidc-provider';

// Below a path, as one of several tenants: then its metadata is where only OpenID Connect looks for it.
const MOUNT = '/tenant';
const SCOPES = 'read write';
// The document about a client is at an https address. The provider is handed it there, and fetches nothing else.
const DOCUMENT = 'https://app.example/client.json';

const secret = () => randomBytes(24).toString('base64url');

function key(kid, alg) {
  const { publicKey, privateKey } =
    alg === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 });
  const own = { kid, use: 'sig', alg };
  return {
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    open: { ...publicKey.export({ format: 'jwk' }), ...own },
    closed: { ...privateKey.export({ format: 'jwk' }), ...own },
  };
}

const keys = [key('first', 'ES256'), key('second', 'RS256')];
const bot = key('bot', 'ES256');
// What tokens are signed with now, and all that its key set lists.
let current = 0;

const machine = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
const bySecret = { ...machine, token_endpoint_auth_method: 'client_secret_basic' };
const clients = [
  { ...bySecret, client_id: 'by-secret', client_secret: secret() },
  {
    ...machine,
    client_id: 'by-key',
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: 'ES256',
    jwks: { keys: [bot.open] },
  },
  // Who asks what a token is worth.
  { ...bySecret, client_id: 'resource-server', client_secret: secret() },
];
const documents = {
  [DOCUMENT]: {
    client_id: DOCUMENT,
    client_name: 'Documented',
    redirect_uris: ['http://127.0.0.1/callback'],
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
};

const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const origin = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(`${origin}${MOUNT}`, {
  clients,
  cookies: { keys: [secret()] },
  jwks: { keys: keys.map((pair) => pair.closed) },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  // No web page outlives the login of a program.
  expiresWithSession: () => false,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  fetch: async (url) => {
    const found = documents[String(url)];
    return new Response(JSON.stringify(found ?? null), {
      status: found ? 200 : 404,
      headers: { 'content-type': 'application/json' },
    });
  },
  features: {
    clientCredentials: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    deviceFlow: { enabled: true },
    dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => true },
    introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === 'resource-server' },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => {
        const { hostname, pathname } = new URL(resource);
        if (hostname !== '127.0.0.1') throw new errors.InvalidTarget();
        const info = { audience: resource, scope: SCOPES, accessTokenTTL: 3600 };
        // Tokens that say nothing have to be asked about; those are the ones that can be revoked.
        if (pathname === '/asking') return { ...info, accessTokenFormat: 'opaque' };
        const { alg, kid } = keys[current].open;
        return { ...info, accessTokenFormat: 'jwt', jwt: { sign: { alg, kid } } };
      },
    },
    revocation: { enabled: true },
  },
});
provider.use(async (ctx, next) => {
  await next();
  if (ctx.oidc?.route === 'jwks') ctx.body = { keys: [keys[current].open] };
  // Unless it says otherwise, a program on another device asks every five seconds whether the user has logged in.
  if (ctx.oidc?.route === 'device_authorization' && ctx.status === 200) ctx.body = { ...ctx.body, interval: 1 };
});
for (const step of ['authorization', 'grant', 'introspection', 'registration_create', 'revocation']) {
  provider.on(`${step}.error`, (_, { error, error_description, error_detail }) => {
    console.error(`${step}:`, error, error_description, error_detail ?? '');
  });
}
provider.on('server_error', (_, error) => console.error(error));

// What an operator would do, by name.
const switches = {
  rotate: () => {
    current = 1;
  },
  // Ends one access token. The revocation endpoint would end the refresh token with it.
  end: async (token) => (await provider.AccessToken.find(token))?.destroy(),
  // Forgets a client, as a provider does that keeps them in memory and is started again.
  forget: (client) => provider.Client.adapter.destroy(client),
};
const setup = {
  issuer: provider.issuer,
  document: DOCUMENT,
  clients: Object.fromEntries(clients.map((client) => [client.client_id, client.client_secret ?? bot.pem])),
  switches: `${origin}/`,
};

const handle = provider.callback();
server.on('request', async (request, response) => {
  console.error(request.method, request.url.split('?')[0]);
  if (request.url.startsWith(`${MOUNT}/`)) {
    request.originalUrl = request.url;
    request.url = request.url.slice(MOUNT.length);
    return handle(request, response);
  }
  const name = request.url.slice(1);
  if (name in switches) await switches[name](Buffer.concat(await request.toArray()).toString());
  const known = name === 'setup' || name in switches;
  response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' });
  return response.end(JSON.stringify(known ? setup : {}));
});

console.log(`${origin}/setup`);
