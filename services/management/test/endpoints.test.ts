/** Sends valid, malformed, unauthorized and repeated requests, and ids of another organization, to every endpoint. */

import { readdir, readFile } from 'node:fs/promises'

import { ALL_PERMISSIONS, createdApiKey, createdToken, type Permission, problem } from '@keyward/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { encodeCursor } from '../src/http/pagination.ts'
import { acceptsIdempotencyKey, type Endpoint, permissionOf, takesBody } from '../src/operations/implement.ts'
import {
  type EveryEndpoint,
  hasBody,
  hasParams,
  isList,
  named,
  startEveryEndpoint,
  UNKNOWN_ID,
  unknownRequest,
  withoutSecrets,
} from './support/every-endpoint.ts'
import { operatorToken } from './support/harness.ts'
import { collectStatements, type Statements } from './support/statements.ts'
import { expectBody, outcome } from './support/vendor.ts'

let api: EveryEndpoint
let statements: Statements
/** Management tokens by their permissions. */
const tokens = new Map<string, string>()

beforeAll(async () => {
  statements = collectStatements()
  api = await startEveryEndpoint()
})
afterAll(async () => {
  statements.stop()
  await api.harness.close()
})

test('endpoints.ts contains the endpoints of every resource folder', async () => {
  const source = await readFile(new URL('../src/endpoints.ts', import.meta.url), 'utf8')
  const folders = await readdir(new URL('../src/resources', import.meta.url))
  expect(folders.filter((name) => !source.includes(`./resources/${name}/`))).toEqual([])
})

/** Returns the endpoints that require a permission, with that permission. */
function permitted(): [string, Endpoint, Permission][] {
  return named().flatMap(([name, one]): [string, Endpoint, Permission][] => {
    const permission = permissionOf(one.operation)
    return permission === null ? [] : [[name, one, permission]]
  })
}

async function tokenWith(permissions: readonly Permission[]): Promise<string> {
  const key = permissions.join()
  const known = tokens.get(key)
  if (known !== undefined) return known
  const response = await api.vendor.call('POST', 'tokens', { body: { name: 'lacking', permissions } })
  const { secret } = expectBody(response, 201, createdToken.required({ secret: true }))
  tokens.set(key, secret)
  return secret
}

const barelyUsed = { secret: '', uses: 0 }
/** Returns an API key for one request. One address may send 100 requests in 10 seconds with the same key. */
async function barelyUsedApiKey(): Promise<string> {
  if (barelyUsed.uses++ % 50 === 0) {
    const response = await api.vendor.call('POST', 'api-keys', { body: { name: 'barely used' } })
    barelyUsed.secret = expectBody(response, 201, createdApiKey.required({ secret: true })).secret
  }
  return barelyUsed.secret
}

describe('a valid request', () => {
  test.each(named())('%s: returns the documented response', async (_, endpoint) => {
    expect((await api.send(endpoint, await api.make(endpoint))).status).toBe(endpoint.status)
  })
})

describe('credentials', () => {
  test.each(named())('%s: returns 401 without a credential or with a wrong one', async (_, endpoint) => {
    for (const token of [null, `${api.credential(endpoint)}x`]) {
      const response = await api.send(endpoint, unknownRequest(endpoint), { token })
      expect(outcome(response)).toBe('401 UNAUTHENTICATED')
      expect(response.headers.get('www-authenticate')).toContain('Bearer')
    }
  })

  test.each(['Bearer kwm_0000', `Bearer kwm_${'0'.repeat(36)}`, 'Bearer %', 'Bearer', 'Basic YTpi'])(
    'returns 401 for "%s"',
    async (authorization) => {
      const response = await api.harness.call('GET', 'products', { token: null, headers: { authorization } })
      expect(outcome(response)).toBe('401 UNAUTHENTICATED')
    },
  )

  test.each(named())('%s: returns 403 for another kind of credential', async (_, endpoint) => {
    const apiKey = endpoint.operation.needs === 'apiKey' ? api.vendor.apiKey : await barelyUsedApiKey()
    const all = [operatorToken, api.vendor.managementToken, apiKey]
    for (const token of all.filter((one) => one !== api.credential(endpoint)))
      expect(outcome(await api.send(endpoint, unknownRequest(endpoint), { token }))).toBe('403 FORBIDDEN')
  })

  test.each(permitted())('%s: returns 403 with the name of the missing permission', async (_, endpoint, needed) => {
    const permissions = ALL_PERMISSIONS.filter((permission) => permission !== needed)
    const token = await tokenWith(permissions)
    const response = await api.send(endpoint, unknownRequest(endpoint), { token })
    expect(outcome(response)).toBe('403 FORBIDDEN')
    expect(response.text).toContain(needed)
  })

  test('readOwnOrganization requires no permission', async () => {
    const response = await api.harness.call('GET', 'organization', { token: await tokenWith([]) })
    expect(response).toMatchObject({ status: 200, body: { id: api.vendor.id } })
  })
})

describe('tenants', () => {
  const isWalled = (endpoint: Endpoint) => endpoint.operation.needs !== 'operator'

  test.each(named((one) => isWalled(one) && hasParams(one)))(
    '%s: returns 404 for ids of another organization',
    async (_, endpoint) => {
      const request = await api.make(endpoint)
      for (const credential of api.strangers(endpoint)) {
        const response = await api.send(endpoint, request, credential)
        expect(outcome(response)).toBe('404 NOT_FOUND')
        expect(response.text).not.toContain(api.vendor.id)
      }
    },
  )

  test.each(named((one) => isWalled(one) && !hasParams(one)))(
    '%s: returns no row of another organization',
    async (_, endpoint) => {
      const request = await api.make(endpoint)
      const responses: string[] = []
      for (const credential of api.strangers(endpoint))
        responses.push((await api.send(endpoint, request, credential)).text)
      const { rows } = await api.harness.database.pool.query<{ id: string }>(
        `select id from products where organization_id = $1 union all select id from customers where organization_id = $1
       union all select id from licenses where organization_id = $1 union all select id from access_rules where organization_id = $1
       union all select id from credentials where organization_id = $1 union all select id from members where organization_id = $1
       union all select id from alerts where organization_id = $1 union all select id from activity where organization_id = $1
       union all select id from audit_log where organization_id = $1 union all select id from signing_keys where organization_id = $1`,
        [api.vendor.id],
      )
      expect(rows.length).toBeGreaterThan(10)
      expect(rows.filter(({ id }) => responses.some((text) => text.includes(id)))).toEqual([])
    },
  )

  test.each(named((one) => isWalled(one) && isList(one)))(
    '%s: rejects cursors of another organization',
    async (_, endpoint) => {
      const { path } = await api.make(endpoint)
      const cursor = encodeCursor({ name: 'products', organizationId: api.vendor.id }, UNKNOWN_ID)
      const expected = endpoint.path === '/products' ? '200' : '422 INVALID_REQUEST'
      expect(outcome(await api.send(endpoint, { path: `${path}?cursor=${cursor}` }))).toBe(expected)
      const token = api.stranger.managementToken
      const foreign = await api.send(endpoint, { path: `${path}?cursor=${cursor}` }, { token })
      expect(outcome(foreign)).toBe(hasParams(endpoint) ? '404 NOT_FOUND' : '422 INVALID_REQUEST')
    },
  )
})

describe('malformed requests', () => {
  test.each(named(hasParams))('%s: returns 404 for an unknown or malformed id', async (_, endpoint) => {
    const { path, body } = await api.make(endpoint)
    for (const id of [UNKNOWN_ID, 'x']) {
      const wrong = { path: path.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, id), ...(body && { body }) }
      expect(outcome(await api.send(endpoint, wrong))).toBe('404 NOT_FOUND')
    }
  })

  test.each(['%20', '%00', '1;select', 'a'.repeat(2_000)])('returns 404 for the id "%s"', async (id) => {
    for (const method of ['GET', 'PATCH', 'DELETE'])
      expect(outcome(await api.vendor.call(method, `products/${id}`))).toBe('404 NOT_FOUND')
  })

  test.each(named(hasBody))('%s: rejects a body that is not a JSON object', async (_, endpoint) => {
    const rejected = async (raw: string, expected: string, headers = {}) =>
      expect(outcome(await api.send(endpoint, unknownRequest(endpoint), { raw, headers }))).toBe(expected)
    await rejected('{', '400 MALFORMED_JSON')
    await rejected('null', '422 INVALID_REQUEST')
    await rejected('{}', '415 UNSUPPORTED_MEDIA_TYPE', { 'content-type': 'text/plain' })
    await rejected(`{"metadata":${'['.repeat(8_000)}${']'.repeat(8_000)}}`, '422 INVALID_REQUEST')
  })

  const bodies: [string, Record<string, string>, (string | Uint8Array<ArrayBuffer>)[]][] = [
    ['400 MALFORMED_JSON', {}, ['{"a":}', 'null null', '\u0000', Uint8Array.of(0x22, 0xff, 0xfe, 0x22), '[1,]', 'NaN']],
    ['422 INVALID_REQUEST', {}, ['[]', '"text"', '7', 'true']],
    ['415 UNSUPPORTED_MEDIA_TYPE', { 'content-type': 'application/x-www-form-urlencoded' }, ['a=b']],
    ['415 UNSUPPORTED_MEDIA_TYPE', { 'content-type': 'application/json; charset=latin1' }, ['{}']],
  ]
  test.each(['products', 'access-rules/import'])(
    'POST %s: rejects malformed JSON, values other than objects, and other content types',
    async (path) => {
      for (const [expected, headers, list] of bodies)
        for (const raw of list) expect(outcome(await api.vendor.call('POST', path, { raw, headers }))).toBe(expected)
    },
  )

  test.each(named())('%s: rejects an unknown parameter', async (_, endpoint) => {
    const { path } = unknownRequest(endpoint)
    const response = await api.send(endpoint, { path: `${path}?surprise=1` })
    expect(outcome(response)).toBe('422 INVALID_REQUEST')
    expect(problem.parse(response.body).errors?.map(({ pointer }) => pointer)).toContain('?surprise')
  })

  test.each(named(takesBody))('%s: rejects an unknown field', async (_, endpoint) => {
    const { path, body } = await api.make(endpoint)
    const response = await api.send(endpoint, { path, body: { ...body, 'sur/prise': 1 } })
    expect(outcome(response)).toBe('422 INVALID_REQUEST')
    expect(problem.parse(response.body).errors?.map((error) => error.pointer)).toContain('#/sur~1prise')
  })

  test.each(named(hasBody))('%s: rejects a body over its limit', async (_, endpoint) => {
    const raw = `{"name":"${'x'.repeat(endpoint.maxBodyBytes)}"}`
    expect(outcome(await api.send(endpoint, unknownRequest(endpoint), { raw }))).toBe('413 PAYLOAD_TOO_LARGE')
  })
})

test.each(named(acceptsIdempotencyKey))('%s: replays the response to an idempotency key', async (id, endpoint) => {
  const request = await api.make(endpoint)
  const headers = { 'idempotency-key': `repeat-${id}` }
  const first = await api.send(endpoint, request, { headers })
  expect(first.status).toBe(endpoint.status)
  const repeated = await api.send(endpoint, request, { headers })
  expect(repeated.headers.get('idempotency-replayed')).toBe('true')
  expect(repeated.status).toBe(first.status)
  expect(repeated.body).toEqual(withoutSecrets(endpoint, first.body))
  expect(repeated.headers.get('location')).toBe(first.headers.get('location'))
})

/** Statements that need no condition on the organization, each with its reason. */
const UNBOUND: readonly RegExp[] = [
  // Retention and a new master key affect all organizations.
  /^delete from "?(?:credentials|alerts|audit_log|merged_customers|folded_rules|license_job_rows|license_jobs)"? where (?:ctid|id) /,
  // The job of these rows belongs to the organization.
  /^(?:select license_id as id, version, before from license_job_rows|update license_job_rows r set) /,
  /^select .* from "signing_keys" where "master_key_id" <> \$1 /,
  // One job signs the delegations of all organizations.
  /^select k\.id, k\.organization_id, .* from signing_keys k join organizations o on o\.id = k\.organization_id\s/s,
  // One statement records the uses of authenticated credentials of all organizations.
  /^insert into credential_uses /,
  // Both values of the range are the id of one organization.
  /^select r\.id from access_rules r where r\.organization_id >= \$1 and r\.organization_id <= \$2\s/,
  // Both ends of the range begin with the id of one organization.
  /^select id, '' as key, [^]* from licenses\s+where \("organization_id", "id"\) > \(\$1::uuid, \$2::uuid\) and \("organization_id", "id"\) < \(\$3::uuid, /,
  // The operator's audit log contains the operator's actions on all organizations.
  /^select \* from "audit_log" where actor ->> 'type' = 'OPERATOR' /,
]

test('every statement on rows of a tenant has a condition on its organization', () => {
  expect(statements.count()).toBeGreaterThan(100)
  expect(statements.unbound().filter((text) => !UNBOUND.some((one) => one.test(text.trim())))).toEqual([])
})
