/** Contains one valid request for each endpoint, by operation id. Each call creates the resources that the request consumes. */

import { apiKey, createdToken, member as memberSchema, page, token as tokenSchema } from '@keyward/contract'
import type { api } from '@keyward/contract/api'
import { connection as connectionSchema, shopEvent as shopEventSchema } from '@keyward/contract/management/commerce'
import { event as eventSchema } from '@keyward/contract/management/events'
import { licenseJob as licenseJobSchema } from '@keyward/contract/management/license-jobs'
import { mail as mailSchema } from '@keyward/contract/management/mails'
import { order as orderSchema } from '@keyward/contract/management/orders'
import { signingKey } from '@keyward/contract/management/signing-keys'
import {
  createdWebhookEndpoint,
  delivery as deliverySchema,
  webhookEndpoint as webhookEndpointSchema,
} from '@keyward/contract/management/webhooks'
import { uuidv7 } from '@keyward/database'
import { SHOP_SECRET, signatureOf } from '@keyward/testkit/shops'

import type { Endpoint } from '../../src/operations/implement.ts'
import type { Harness } from './harness.ts'
import { createVendor, expectBody, type Vendor } from './vendor.ts'

export interface World {
  harness: Harness
  vendor: Vendor
}

export interface Request {
  path: string
  body?: Record<string, unknown>
}

type Maker = (world: World) => Promise<Request>

const inFuture = () => new Date(Date.now() + 3_600_000).toISOString()
let counter = 0
const unique = () => ++counter

const fixed =
  (path: string, body?: () => Record<string, unknown>): Maker =>
  async () => ({ path, ...(body && { body: body() }) })

/** Returns a request to a path below a new resource. */
const below =
  (resource: string, make: (world: World) => Promise<string>, rest = '', body?: Record<string, unknown>): Maker =>
  async (world) => ({ path: `${resource}/${await make(world)}${rest}`, ...(body && { body }) })

const organization = async ({ harness }: World) => (await createVendor(harness)).id
const product = ({ vendor }: World) => vendor.product()
const template = async ({ vendor }: World) => (await vendor.template()).id
const paidOrder = async (world: World): Promise<Request> => ({
  path: `orders/shop/${unique()}/1`,
  body: { templateId: await template(world), customer: { email: 'ada@example.com' }, state: 'paid' },
})
const customer = ({ vendor }: World) => vendor.customer()
const license = async ({ vendor }: World) => (await vendor.license()).id
const subscription = async ({ vendor }: World) =>
  (await vendor.license({ policy: { type: 'SUBSCRIPTION', expiresAt: inFuture() } })).id
const jobOf = async (world: World) => ({ action: { type: 'suspend' }, ids: [await license(world)] })
const job = async (world: World) =>
  expectBody(await world.vendor.call('POST', 'license-jobs', { body: await jobOf(world) }), 202, licenseJobSchema).id
const endedJob = async (world: World) => {
  const id = await job(world)
  await world.vendor.call('POST', `license-jobs/${id}/cancel`)
  return id
}
const rule = async ({ vendor }: World) => (await vendor.rule({ type: 'HWID', value: `machine ${unique()}` })).id
const key = async ({ vendor }: World) =>
  expectBody(await vendor.call('POST', 'api-keys', { body: { name: 'k' } }), 201, apiKey.loose()).id
const token = async ({ vendor }: World) =>
  expectBody(await vendor.call('POST', 'tokens', { body: { name: 't', permissions: [] } }), 201, tokenSchema.loose()).id
const member = async ({ vendor }: World) => {
  const body = { email: `m${unique()}@example.com`, permissions: ['licenses.read'] }
  return expectBody(await vendor.call('POST', 'members', { body }), 201, memberSchema).id
}

async function accessToken(world: World): Promise<string> {
  const memberId = await member(world)
  const response = await world.vendor.call('POST', `members/${memberId}/access-tokens`, {
    body: { name: 'p', permissions: ['licenses.read'] },
  })
  return `members/${memberId}/access-tokens/${expectBody(response, 201, createdToken).id}`
}

async function retiredKey({ vendor }: World): Promise<string> {
  await vendor.call('POST', 'signing-keys/rotate')
  const { data } = expectBody(await vendor.call('GET', 'signing-keys'), 200, page(signingKey))
  const retired = data.find((one) => one.retiredAt !== null && one.withdrawnAt === null)
  if (!retired) throw new Error('There is no retired key')
  return retired.id
}

export async function insertMachine({ harness }: World, licenseId: string, machineId: string): Promise<string> {
  const id = uuidv7()
  await harness.database.pool.query(
    'insert into machines (id, license_id, machine_id, hostname) values ($1, $2, $3, $4)',
    [id, licenseId, Buffer.from(machineId), 'build-7'],
  )
  return id
}

async function machine(world: World): Promise<Request> {
  const licenseId = await license(world)
  return { path: `licenses/${licenseId}/machines/${await insertMachine(world, licenseId, `m ${unique()}`)}` }
}

async function alert(world: World): Promise<string> {
  const id = uuidv7()
  await world.harness.database.pool.query(
    `insert into alerts (id, organization_id, license_id, count, first_at, last_at) values ($1, $2, $3, 2, now(), now())`,
    [id, world.vendor.id, await license(world)],
  )
  return id
}

async function newLicense({ vendor }: World): Promise<Record<string, unknown>> {
  const policy = { type: 'SUBSCRIPTION', maxMachines: 3, expiresAt: inFuture() }
  return { productId: await vendor.product(), customerId: await vendor.customer(), policy, metadata: { a: 1 } }
}

const newRule = () => ({
  kind: 'EXCLUSION',
  type: 'HWID',
  value: `machine ${unique()}`,
  scope: 'ORGANIZATION',
  note: 'a note',
  expiresAt: inFuture(),
  allowSuspendedOrExpired: true,
})

async function ruleSet({ vendor }: World): Promise<string> {
  const path = `access-rules/sets/set-${unique()}`
  await vendor.call('PUT', path, { body: { rules: [newRule()] } })
  return path
}

async function event({ vendor }: World): Promise<string> {
  await vendor.product()
  return expectBody(await vendor.call('GET', 'events'), 200, page(eventSchema)).data[0]!.id
}

async function webhookEndpoint({ vendor }: World): Promise<string> {
  const body = { url: `https://hooks.example.com/${unique()}`, types: ['machine.*'] }
  const response = await vendor.call('POST', 'webhook-endpoints', { body })
  const created = expectBody(response, 201, createdWebhookEndpoint)
  await removeAfterwards(vendor)
  return created.id
}

/** Deletes all webhook endpoints except the newest ten, so that their number stays below the quota. */
async function removeAfterwards(vendor: Vendor): Promise<void> {
  const { data } = expectBody(await vendor.call('GET', 'webhook-endpoints'), 200, page(webhookEndpointSchema))
  for (const { id } of data.slice(10)) await vendor.call('DELETE', `webhook-endpoints/${id}`)
}

async function delivery(world: World): Promise<string> {
  const endpointId = await webhookEndpoint(world)
  const response = await world.vendor.call('POST', `webhook-endpoints/${endpointId}/test`)
  return `webhook-endpoints/${endpointId}/deliveries/${expectBody(response, 201, deliverySchema).id}`
}

async function connection({ vendor }: World): Promise<string> {
  const { data } = expectBody(await vendor.call('GET', 'commerce'), 200, page(connectionSchema))
  for (const { id } of data.slice(10)) await vendor.call('DELETE', `commerce/${id}`)
  const body = { name: 'Shop', shop: 'polar', secret: SHOP_SECRET }
  return expectBody(await vendor.call('POST', 'commerce', { body }), 201, connectionSchema).id
}

async function shopEvent(world: World): Promise<string> {
  const path = `commerce/${await connection(world)}/events`
  const raw = JSON.stringify({ type: 'other' })
  const options = { token: null, raw, headers: signatureOf('polar', raw, String(unique())) }
  await world.vendor.call('POST', path, options)
  const { data } = expectBody(await world.vendor.call('GET', path), 200, page(shopEventSchema))
  return `${path}/${data[0]!.id}`
}

async function newMail(world: World): Promise<Record<string, unknown>> {
  return { template: 'key', licenseId: await license(world) }
}

async function mail(world: World): Promise<string> {
  return expectBody(await world.vendor.call('POST', 'mails', { body: await newMail(world) }), 201, mailSchema).id
}

type NamesOf<Table> = {
  [Name in keyof Table]: Table[Name] extends
    | { needs: 'person' | 'portal' | 'nothing' | 'signature' }
    | { route: `${string} /me/${string}` }
    ? never
    : Name
}[keyof Table]
type MakerName = { [Resource in keyof typeof api]: NamesOf<(typeof api)[Resource]> }[keyof typeof api]

/** An operation without a request does not compile. */
const makers: Record<MakerName, Maker> = {
  listOrganizations: fixed('organizations'),
  createOrganization: fixed('organizations', () => ({ name: 'Acme', plan: 'LITE' })),
  readOrganization: below('organizations', organization),
  updateOrganization: below('organizations', organization, '', { name: 'Acme 2', plan: 'STANDARD' }),
  deleteOrganization: below('organizations', organization),
  suspendOrganization: below('organizations', organization, '/suspend'),
  reinstateOrganization: below('organizations', organization, '/reinstate'),
  createRecoveryToken: below('organizations', organization, '/recovery-token', { name: 'lost' }),
  updateOwnOrganization: fixed('organization', () => ({ timeZone: 'Europe/Zurich' })),
  readOwnOrganization: fixed('organization'),
  listProducts: fixed('products'),
  createProduct: fixed('products', () => ({ name: 'Studio', metadata: { a: [1] } })),
  readProduct: below('products', product),
  updateProduct: below('products', product, '', { name: 'Suite', metadata: {} }),
  deleteProduct: below('products', product),
  listOrders: fixed('orders'),
  readOrder: async (world) => {
    const { path, body } = await paidOrder(world)
    expectBody(await world.vendor.call('PUT', path, { body: body ?? {} }), 200, orderSchema)
    return { path: path.split('/').slice(0, 3).join('/') }
  },
  putOrder: (world) => paidOrder(world),
  listMails: fixed('mails'),
  sendMail: async (world) => ({ path: 'mails', body: await newMail(world) }),
  readMail: below('mails', mail),
  retryMail: below('mails', mail, '/retry'),
  listConnections: fixed('commerce'),
  createConnection: async (world) => {
    await connection(world)
    return { path: 'commerce', body: { name: 'Shop', shop: 'stripe', mode: 'test', secret: SHOP_SECRET } }
  },
  readConnection: below('commerce', connection),
  updateConnection: below('commerce', connection, '', { states: ['paid'], unknownPrices: 'ignore' }),
  deleteConnection: below('commerce', connection),
  listShopEvents: below('commerce', connection, '/events'),
  retryShopEvent: async (world) => ({ path: `${await shopEvent(world)}/retry` }),
  listTemplates: below('products', product, '/templates'),
  createTemplate: below('products', product, '/templates', { name: 'Studio', policy: { type: 'PERPETUAL' } }),
  readTemplate: below('templates', template),
  updateTemplate: below('templates', template, '', { policy: { maxMachines: 7 } }),
  deleteTemplate: below('templates', template),
  applyTemplate: below('templates', template, '/apply', { dryRun: false }),
  listCustomers: fixed('customers'),
  createCustomer: fixed('customers', () => ({
    email: 'a@example.com',
    name: 'A',
    externalId: `x-${unique()}`,
    metadata: {},
  })),
  readCustomer: below('customers', customer),
  updateCustomer: below('customers', customer, '', { email: 'b@example.com', name: null }),
  deleteCustomer: below('customers', customer),
  mergeCustomer: async (world) => ({
    path: `customers/${await customer(world)}/merge`,
    body: { into: await customer(world) },
  }),
  listLicenses: fixed('licenses'),
  createLicense: async (world) => ({
    path: 'licenses',
    body: { ...(await newLicense(world)), key: `old ${unique()}` },
  }),
  importLicenses: async (world) => ({ path: 'licenses/import', body: { licenses: [await newLicense(world)] } }),
  readLicense: below('licenses', license),
  readLicenseEntitlements: below('licenses', license, '/entitlements'),
  updateLicense: below('licenses', license, '', { policy: { maxMachines: 9 }, metadata: { b: 2 } }),
  deleteLicense: below('licenses', license),
  suspendLicense: below('licenses', license, '/suspend', { reason: 'chargeback' }),
  reinstateLicense: below('licenses', license, '/reinstate'),
  revokeLicense: below('licenses', license, '/revoke'),
  renewLicense: below('licenses', subscription, '/renew', { expiresAt: '2040-01-01T00:00:00Z' }),
  extendLicense: below('licenses', subscription, '/extend', { days: 30 }),
  replaceLicenseKey: async (world) => ({
    path: `licenses/${await license(world)}/replace-key`,
    body: { key: `new ${unique()}` },
  }),
  findMachines: fixed('machines'),
  dryRunLicenseJob: async (world) => ({ path: 'license-jobs/dry-run', body: await jobOf(world) }),
  startLicenseJob: async (world) => ({ path: 'license-jobs', body: await jobOf(world) }),
  listLicenseJobs: fixed('license-jobs'),
  readLicenseJob: below('license-jobs', job),
  cancelLicenseJob: below('license-jobs', job, '/cancel'),
  undoLicenseJob: below('license-jobs', endedJob, '/undo'),
  listMachines: below('licenses', license, '/machines'),
  removeMachine: machine,
  requestMachines: async ({ vendor }) => {
    const { key: licenseKey } = await vendor.license({ policy: { type: 'PERPETUAL', maxReleases: 3 } })
    return { path: 'machines', body: { licenseKey, fingerprint: 'machine 1' } }
  },
  downloadLicenseFile: below('licenses', license, '/file'),
  issueMachineFile: below('licenses', license, '/file', { machineId: 'm' }),
  requestLicenseFile: async ({ vendor }) => {
    const { key: licenseKey } = await vendor.license({ policy: { type: 'PERPETUAL' } })
    return { path: 'licenses/file', body: { licenseKey, fingerprint: 'machine 1' } }
  },
  createPortalSession: async (world) => ({
    path: 'portal-sessions',
    body: { customerId: await customer(world), actions: ['release'] },
  }),
  endPortalSessions: below('customers', customer, '/portal-sessions'),
  search: fixed('search?q=ada'),
  readNames: fixed('names?ids=01a2042f-a039-7028-8465-570518c9f627'),
  listAccessRules: fixed('access-rules'),
  createAccessRule: fixed('access-rules', newRule),
  readAccessRule: below('access-rules', rule),
  updateAccessRule: below('access-rules', rule, '', { note: 'n', expiresAt: null }),
  deleteAccessRule: below('access-rules', rule),
  importAccessRules: fixed('access-rules/import', () => ({ rules: [newRule(), newRule()] })),
  exportAccessRules: fixed('access-rules/export'),
  exportLicenses: fixed('licenses/export'),
  exportCustomers: fixed('customers/export'),
  exportMachines: fixed('machines/export'),
  exportAuditLog: fixed('audit-log/export'),
  exportActivity: fixed('activity/export'),
  setAccessRuleMode: async (world) => ({
    path: 'access-rules/set-mode',
    body: { mode: 'MONITOR', ids: [await rule(world)] },
  }),
  deleteAccessRules: async (world) => ({ path: 'access-rules/delete', body: { ids: [await rule(world)] } }),
  listAccessRuleSets: fixed('access-rules/sets'),
  readAccessRuleSet: async (world) => ({ path: await ruleSet(world) }),
  replaceAccessRuleSet: fixed('access-rules/sets/threat%20feed', () => ({ rules: [newRule()] })),
  deleteAccessRuleSet: async (world) => ({ path: await ruleSet(world) }),
  readMyIp: fixed('access-rules/my-ip'),
  evaluateAccessRules: async (world) => ({
    path: 'access-rules/evaluate',
    body: { licenseId: await license(world), ip: '203.0.113.7', machineId: 'm', country: 'DE' },
  }),
  listLicenseActivity: below('licenses', license, '/activity'),
  listActivity: fixed('activity'),
  listAlerts: fixed('alerts'),
  acknowledgeAlert: below('alerts', alert, '/acknowledge'),
  countChecks: fixed('analytics/checks'),
  listAuditLog: fixed('audit-log'),
  listEvents: fixed('events'),
  readEvent: below('events', event),
  listWebhookEndpoints: fixed('webhook-endpoints'),
  createWebhookEndpoint: async ({ vendor }) => {
    await removeAfterwards(vendor)
    return {
      path: 'webhook-endpoints',
      body: { url: 'https://hooks.example.com/new', types: ['license.*'], description: 'x' },
    }
  },
  readWebhookEndpoint: below('webhook-endpoints', webhookEndpoint),
  updateWebhookEndpoint: below('webhook-endpoints', webhookEndpoint, '', { types: ['*'], enabled: false }),
  deleteWebhookEndpoint: below('webhook-endpoints', webhookEndpoint),
  rotateWebhookSecret: below('webhook-endpoints', webhookEndpoint, '/rotate-secret'),
  testWebhookEndpoint: below('webhook-endpoints', webhookEndpoint, '/test'),
  replayEvents: below('webhook-endpoints', webhookEndpoint, '/replay', {
    from: '2026-11-20T09:00:00Z',
    types: ['machine.*'],
  }),
  listWebhookDeliveries: below('webhook-endpoints', webhookEndpoint, '/deliveries'),
  resendWebhookDelivery: async (world) => ({ path: `${await delivery(world)}/resend` }),
  listOperatorAuditLog: fixed('operator/audit-log'),
  listApiKeys: fixed('api-keys'),
  createApiKey: fixed('api-keys', () => ({ name: 'k', expiresAt: inFuture() })),
  readApiKey: below('api-keys', key),
  revokeApiKey: below('api-keys', key),
  listTokens: fixed('tokens'),
  createToken: fixed('tokens', () => ({ name: 't', permissions: ['licenses.read'], expiresAt: inFuture() })),
  readToken: below('tokens', token),
  revokeToken: below('tokens', token),
  listMembers: fixed('members'),
  createMember: fixed('members', () => ({ email: `n${unique()}@example.com`, permissions: ['audit.read'] })),
  readMember: below('members', member),
  updateMember: below('members', member, '', { permissions: ['audit.read'] }),
  deleteMember: below('members', member),
  createInvitation: below('members', member, '/invitation'),
  listSessions: below('members', member, '/sessions'),
  endSessions: below('members', member, '/sessions'),
  listAccessTokens: below('members', member, '/access-tokens'),
  createAccessToken: below('members', member, '/access-tokens', { name: 'p', permissions: ['audit.read'] }),
  readAccessToken: async (world) => ({ path: await accessToken(world) }),
  revokeAccessToken: async (world) => ({ path: await accessToken(world) }),
  listSigningKeys: fixed('signing-keys'),
  prepareSigningKey: fixed('signing-keys/prepare'),
  rotateSigningKey: fixed('signing-keys/rotate'),
  withdrawSigningKey: below('signing-keys', retiredKey, '/withdraw'),
  readInstallation: fixed('installation'),
  listValidators: fixed('validators'),
  readPropagation: fixed('propagation'),
}

const OF_PERSONS: ReadonlySet<string> = new Set(['person', 'portal', 'nothing', 'signature'])

/**
 * Returns whether the endpoint signs a person in, acts on the signed-in person or customer, or receives signed events. The tests in
 * test/sign-in, test/commerce and portal.test.ts send these requests.
 */
export function isOfPerson({ operation: { needs }, path }: Endpoint): boolean {
  return OF_PERSONS.has(needs) || path.startsWith('/me/')
}

export async function validRequest(operationId: string, world: World): Promise<Request> {
  const [, make] = Object.entries(makers).find(([name]) => name === operationId) ?? []
  if (!make) throw new Error(`There is no request for ${operationId}`)
  return make(world)
}
