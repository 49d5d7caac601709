/**
 * Creates the demo organization through the management API. Existing objects are kept. The result of each step is saved before the next
 * step, so that a start after an interruption can continue there.
 */

import { ALL_PERMISSIONS } from '@keyward/contract'
import { z } from 'zod'

/** The demo organization, its secrets, and the objects in it. */
export const demoSchema = z.object({
  organizationId: z.string(),
  managementToken: z.string(),
  apiKey: z.string(),
  productId: z.string(),
  customerId: z.string(),
  licenseId: z.string(),
  licenseKey: z.string(),
})
export type Demo = z.infer<typeof demoSchema>

export const demoStateSchema = demoSchema.partial({
  productId: true,
  customerId: true,
  licenseId: true,
  licenseKey: true,
})
/** A demo organization in which some objects may not exist yet. */
export type DemoState = z.infer<typeof demoStateSchema>

interface DemoResult {
  demo: Demo
  /** True if the license is new. The validator may not have received a new license yet. */
  created: boolean
}

export interface ManagementAccess {
  /** The base address of the management service. */
  url: string
  operatorToken: string
}

const DAY_MS = 86_400_000

const createdSchema = z.object({ id: z.string() })
const createdOrganizationSchema = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })
const createdLicenseSchema = z.object({ id: z.string(), key: z.string() })
const licenseSchema = z.object({ status: z.string(), policy: z.object({ expiresAt: z.string().nullable() }) })

/**
 * Returns a demo whose license is active for at least another day. Creates the objects that `known` lacks. Calls `save` after each step.
 */
export async function ensureDemo(
  access: ManagementAccess,
  known: DemoState | undefined,
  save: (demo: DemoState) => Promise<void>,
): Promise<DemoResult> {
  const stored = demoSchema.safeParse(known)
  if (stored.success && (await isLicenseUsable(access, stored.data))) return { demo: stored.data, created: false }
  let demo = known !== undefined && (await tokenWorks(access, known)) ? known : await createOrganization(access)
  await save(demo)
  const call = <T>(path: string, body: object, schema: z.ZodType<T>) =>
    post(access, path, demo.managementToken, body, schema)

  const productId = demo.productId ?? (await call('/products', { name: 'Demo app' }, createdSchema)).id
  await save((demo = { ...demo, productId }))
  const buyer = { email: 'customer@example.com', name: 'Demo customer' }
  const customerId = demo.customerId ?? (await call('/customers', buyer, createdSchema)).id
  await save((demo = { ...demo, customerId }))
  const policy = { type: 'SUBSCRIPTION', maxMachines: 5, expiresAt: new Date(Date.now() + 365 * DAY_MS).toISOString() }
  const license = await call('/licenses', { productId, customerId, policy }, createdLicenseSchema)
  const complete: Demo = { ...demo, productId, customerId, licenseId: license.id, licenseKey: license.key }
  await save(complete)
  return { demo: complete, created: true }
}

const DEMO_MEMBER = 'demo@example.com'
const invitationSchema = z.object({ path: z.string() })
const membersSchema = z.object({ data: z.array(z.object({ id: z.string(), email: z.string() })) })

/** Returns the path of a link that signs the demo member in once. Creates the member if there is none. */
export async function inviteDemoMember(access: ManagementAccess, demo: Demo): Promise<string> {
  const get = await request(access, 'GET', '/members?limit=100', demo.managementToken)
  const { data } = membersSchema.parse(await get.json())
  const member = data.find(({ email }) => email === DEMO_MEMBER)
  if (!member) {
    const body = { email: DEMO_MEMBER, permissions: ALL_PERMISSIONS }
    const created = z.object({ invitation: invitationSchema })
    return (await post(access, '/members', demo.managementToken, body, created)).invitation.path
  }
  const response = await request(access, 'POST', `/members/${member.id}/invitation`, demo.managementToken)
  if (response.status !== 200) throw new Error(`Cannot invite the demo member: ${await response.text()}`)
  return invitationSchema.parse(await response.json()).path
}

async function isLicenseUsable(access: ManagementAccess, demo: Demo): Promise<boolean> {
  const response = await request(access, 'GET', `/licenses/${demo.licenseId}`, demo.managementToken)
  if (!response.ok) return false
  const { status, policy } = licenseSchema.parse(await response.json())
  return status === 'active' && (policy.expiresAt === null || Date.parse(policy.expiresAt) > Date.now() + DAY_MS)
}

async function tokenWorks(access: ManagementAccess, demo: DemoState): Promise<boolean> {
  return (await request(access, 'GET', '/organization', demo.managementToken)).ok
}

async function createOrganization(access: ManagementAccess): Promise<DemoState> {
  const body = { name: 'Demo', plan: 'STANDARD' }
  const created = await post(access, '/organizations', access.operatorToken, body, createdOrganizationSchema)
  return { organizationId: created.id, managementToken: created.managementToken, apiKey: created.apiKey }
}

async function post<T>(
  access: ManagementAccess,
  path: string,
  token: string,
  body: object,
  schema: z.ZodType<T>,
): Promise<T> {
  const response = await request(access, 'POST', path, token, body)
  if (response.status !== 201)
    throw new Error(`Cannot create the demo: POST ${path} returned ${response.status}: ${await response.text()}`)
  return schema.parse(await response.json())
}

function request(
  access: ManagementAccess,
  method: string,
  path: string,
  token: string,
  body?: object,
): Promise<Response> {
  return fetch(`${access.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}
