/**
 * The demo organization, made through the management API as a vendor's would be. What already exists is kept, each
 * step is saved before the next, and a start that was killed half-way is continued where it stopped.
 */
import { z } from 'zod'

/** The demo organization, its secrets, and what was made in it. */
export const Demo = z.object({
  organizationId: z.string(),
  managementToken: z.string(),
  apiKey: z.string(),
  productId: z.string(),
  customerId: z.string(),
  licenseId: z.string(),
  licenseKey: z.string(),
})
export type Demo = z.infer<typeof Demo>

export const DemoState = Demo.partial({ productId: true, customerId: true, licenseId: true, licenseKey: true })
/** What exists of it so far. */
export type DemoState = z.infer<typeof DemoState>

export interface DemoResult {
  demo: Demo
  /** Whether the license is new, so that the validator may not know it yet. */
  created: boolean
}

export interface ManagementAccess {
  /** Base address of the management service. */
  url: string
  operatorToken: string
}

const DAY_MS = 86_400_000

const Created = z.object({ id: z.string() })
const CreatedOrganization = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })
const CreatedLicense = z.object({ id: z.string(), key: z.string() })
const License = z.object({ status: z.string(), policy: z.object({ expiresAt: z.string().nullable() }) })

/** Returns a demo with a license that is good for at least a day; `save` is called after each thing that is created. */
export async function ensureDemo(
  access: ManagementAccess,
  known: DemoState | undefined,
  save: (demo: DemoState) => Promise<void>,
): Promise<DemoResult> {
  const complete = Demo.safeParse(known)
  if (complete.success && (await licenseIsGood(access, complete.data))) return { demo: complete.data, created: false }
  let demo = known !== undefined && (await tokenWorks(access, known)) ? known : await createOrganization(access)
  await save(demo)
  const call = <T>(path: string, body: object, schema: z.ZodType<T>) =>
    post(access, path, demo.managementToken, body, schema)

  const productId = demo.productId ?? (await call('/products', { name: 'Demo app' }, Created)).id
  await save((demo = { ...demo, productId }))
  const buyer = { email: 'customer@example.com', name: 'Demo customer' }
  const customerId = demo.customerId ?? (await call('/customers', buyer, Created)).id
  await save((demo = { ...demo, customerId }))
  const policy = { type: 'SUBSCRIPTION', maxMachines: 5, expiresAt: new Date(Date.now() + 365 * DAY_MS).toISOString() }
  const license = await call('/licenses', { productId, customerId, policy }, CreatedLicense)
  const made: Demo = { ...demo, productId, customerId, licenseId: license.id, licenseKey: license.key }
  await save(made)
  return { demo: made, created: true }
}

async function licenseIsGood(access: ManagementAccess, demo: Demo): Promise<boolean> {
  const response = await request(access, 'GET', `/licenses/${demo.licenseId}`, demo.managementToken)
  if (!response.ok) return false
  const { status, policy } = License.parse(await response.json())
  return status === 'active' && (policy.expiresAt === null || Date.parse(policy.expiresAt) > Date.now() + DAY_MS)
}

async function tokenWorks(access: ManagementAccess, demo: DemoState): Promise<boolean> {
  return (await request(access, 'GET', '/organization', demo.managementToken)).ok
}

async function createOrganization(access: ManagementAccess): Promise<DemoState> {
  const body = { name: 'Demo', plan: 'STANDARD' }
  const made = await post(access, '/organizations', access.operatorToken, body, CreatedOrganization)
  return { organizationId: made.id, managementToken: made.managementToken, apiKey: made.apiKey }
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
    throw new Error(`The demo could not be made: POST ${path} answered ${response.status}: ${await response.text()}`)
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
