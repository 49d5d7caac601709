/**
 * Combines the features of licenses in pairs, in both orders, over HTTP. The state that the API returns before each check is given to the
 * naive model. The verdict, the slot, the records and the events of the check must be those of the model. The same applies to the license
 * files of apps and of single machines. A new feature is a line of FEATURES.
 */

import { parseNetwork, readRuleMatch } from '@keyward/address'
import {
  accessRule,
  createdApiKey,
  filesEndWithLease,
  license as licenseSchema,
  machine as machineSchema,
} from '@keyward/contract'
import { activityEntry } from '@keyward/contract/management/activity'
import { checkCounts } from '@keyward/contract/management/analytics'
import { template as templateSchema } from '@keyward/contract/management/templates'
import { verdictV2 } from '@keyward/contract/validation'
import { uuidToBytes } from '@keyward/database'
import { type AccessRuleRecord, type LicenseRecord, NOT_STARTED } from '@keyward/engine'
import {
  naiveAppFile,
  type NaiveCheck,
  naiveDecide,
  naiveMachineFile,
  type NaiveVerdict,
  type World,
} from '@keyward/engine/naive'
import { parsePayload } from '@keyward/license-file'
import { startValidatorProcess, type ValidatorProcess } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from './support/harness.ts'
import { createVendor, expectBody, outcome, patient, patiently, type Vendor } from './support/vendor.ts'

const DAY_MS = 86_400_000
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()

interface Subject {
  vendor: Vendor
  licenseId: string
  /** The secret of the API key, and the product that the key is bound to. */
  apiKey: { secret: string; productId: string | null }
  /** The verdicts of the model, one for each check. */
  expected: NaiveVerdict[]
  /** The machine of each issued file, or an empty text if the machine is not recorded. */
  files: string[]
  /** The events of files for single machines. */
  fileEvents: string[]
}

interface Sent {
  machineId: string | null
  ip: string
}

const INSIDE: Sent = { machineId: 'm-1', ip: '192.0.2.9' }
const OUTSIDE: Sent = { machineId: 'm-2', ip: '203.0.113.9' }
const CHECKS = [INSIDE, OUTSIDE, { machineId: null, ip: INSIDE.ip }, INSIDE, { ...OUTSIDE, machineId: 'm-3' }]

const FEATURES: Readonly<Record<string, (subject: Subject) => Promise<unknown>>> = {
  exclusion: (one) => addRule(one, 'LICENSE', { kind: 'EXCLUSION', type: 'HWID', value: 'm-1' }),
  'exclusion of expired licenses': (one) =>
    addRule(one, 'PRODUCT', { kind: 'EXCLUSION', type: 'HWID', value: 'm-2', allowSuspendedOrExpired: true }),
  restriction: (one) => addRule(one, 'PRODUCT', { kind: 'RESTRICTION', type: 'IP', value: '192.0.2.0/24' }),
  'monitored rule': (one) => addRule(one, 'LICENSE', { mode: 'MONITOR', type: 'IP', value: '192.0.2.0/28' }),
  lease: (one) => setPolicy(one, { leaseSeconds: 3_600 }),
  term: (one) => setPolicy(one, { type: 'TRIAL', durationDays: 14, expiresAt: null }),
  grace: (one) => setPolicy(one, { type: 'SUBSCRIPTION', durationDays: null, expiresAt: inDays(-1), graceDays: 7 }),
  'expired license': (one) =>
    setPolicy(one, { type: 'SUBSCRIPTION', durationDays: null, expiresAt: inDays(-9), graceDays: 0 }),
  suspension: async (one) => change(one, 'POST', `licenses/${one.licenseId}/suspend`),
  'full license': async (one) => {
    await setPolicy(one, { maxMachines: 1 })
    await check(one, { machineId: 'm-0', ip: INSIDE.ip })
  },
  'key of the product': async (one) => useKeyOf(one, (await readLicense(one)).productId),
  'key of another product': async (one) => useKeyOf(one, await one.vendor.product('Other')),
  'merged customer': mergeCustomer,
  template: applyTemplate,
  'file for one machine': issueMachineFile,
}

let harness: Harness
let validator: ValidatorProcess

beforeAll(async () => {
  harness = await startHarness({ TRUSTED_PROXIES: 'all' })
  validator = await startValidatorProcess(harness.database, { TRUSTED_PROXIES: 'all' })
})
afterAll(async () => {
  await validator.stop()
  await harness.close()
})

/** Sends a request whose change is in force when it returns. */
async function change({ vendor }: Subject, method: string, path: string, body?: object) {
  const response = await vendor.call(method, path, { ...(body && { body }), headers: { prefer: 'wait=10' } })
  if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${response.text}`)
  return response
}

const setPolicy = (one: Subject, policy: object) => change(one, 'PATCH', `licenses/${one.licenseId}`, { policy })

async function addRule(one: Subject, scope: 'LICENSE' | 'PRODUCT', fields: object) {
  const { id, productId } = await readLicense(one)
  const scopeId = scope === 'LICENSE' ? id : productId
  return change(one, 'POST', 'access-rules', { kind: 'BLACKLIST', scope, scopeId, ...fields })
}

async function useKeyOf(one: Subject, productId: string): Promise<void> {
  const created = await change(one, 'POST', 'api-keys', { name: 'bound', productId })
  one.apiKey = { secret: createdApiKey.required({ secret: true }).parse(created.body).secret, productId }
}

/** Merges the customer, whom a rule of the organization blacklists, into another one. */
async function mergeCustomer(one: Subject): Promise<void> {
  const { customerId } = await readLicense(one)
  const rule = { kind: 'BLACKLIST', type: 'CUSTOMER', value: customerId, scope: 'ORGANIZATION' }
  await change(one, 'POST', 'access-rules', rule)
  await change(one, 'POST', `customers/${customerId}/merge`, { into: await one.vendor.customer() })
}

/** The policy with which every license is created. */
const POLICY = { type: 'PERPETUAL', maxMachines: 2 }

/**
 * Moves the license to a template, changes the machine limit of the template, and applies it. The license gets the new limit if its limit is
 * still that of the template. Its other terms stay.
 */
async function applyTemplate(one: Subject): Promise<void> {
  const { id, productId, policy } = await readLicense(one)
  const template = await one.vendor.template({ policy: POLICY }, productId)
  await change(one, 'PATCH', `licenses/${id}`, { templateId: template.id })
  await change(one, 'PATCH', `templates/${template.id}`, { policy: { maxMachines: 3 } })
  await change(one, 'POST', `templates/${template.id}/apply`)
  await vi.waitFor(async () => {
    const { body } = await one.vendor.call('GET', `templates/${template.id}`)
    expect(templateSchema.parse(body).application?.endedAt).toEqual(expect.any(String))
  }, 20_000)
  const maxMachines = policy.maxMachines === POLICY.maxMachines ? 3 : policy.maxMachines
  expect((await readLicense(one)).policy).toEqual({ ...policy, maxMachines })
  // The job of the template has no request that waits for the validators. This change follows its changes.
  await change(one, 'POST', 'api-keys', { name: 'a change that follows' })
}

const listOf = <Item extends z.ZodType>(item: Item) => z.object({ data: z.array(item), nextCursor: z.null() })

async function readList<Item extends z.ZodType>({ vendor }: Subject, path: string, item: Item) {
  return expectBody(await vendor.call('GET', `${path}?limit=100`), 200, listOf(item)).data
}

const readMachines = (one: Subject) => readList(one, `licenses/${one.licenseId}/machines`, machineSchema)

async function readLicense({ vendor, licenseId }: Subject) {
  return expectBody(await vendor.call('GET', `licenses/${licenseId}`), 200, licenseSchema)
}

function licenseRecord(vendor: Vendor, license: z.output<typeof licenseSchema>): LicenseRecord {
  const { policy, status } = license
  const unlimited = policy.durationDays === null ? Infinity : NOT_STARTED
  return {
    id: uuidToBytes(license.id),
    organizationId: uuidToBytes(vendor.id),
    productId: uuidToBytes(license.productId),
    customerId: uuidToBytes(license.customerId),
    key: Buffer.from(license.key),
    status: status === 'suspended' || status === 'revoked' ? status : 'active',
    expiresAtMs: policy.expiresAt === null ? unlimited : Date.parse(policy.expiresAt),
    maxMachines: policy.maxMachines,
    used: license.machines.used,
    entitlements: null,
    leaseSeconds: policy.leaseSeconds,
    graceDays: policy.graceDays,
  }
}

function ruleRecord(vendor: Vendor, rule: z.output<typeof accessRule>): AccessRuleRecord {
  const { id, kind, mode, type, value, scope, scopeId, expiresAt, allowSuspendedOrExpired } = rule
  const match = readRuleMatch(type, Buffer.from(value), type === 'CUSTOMER' ? uuidToBytes(value) : null)
  if (typeof match === 'string') throw new Error(match)
  return {
    id: uuidToBytes(id),
    organizationId: uuidToBytes(vendor.id),
    kind,
    mode,
    scope,
    scopeId: scopeId === null ? null : uuidToBytes(scopeId),
    expiresAtMs: expiresAt === null ? Infinity : Date.parse(expiresAt),
    allowSuspendedOrExpired,
    ...match,
  }
}

/** Returns the state that the API returns, for the model. */
async function stateFor(one: Subject, { machineId, ip }: Sent): Promise<{ world: World; given: NaiveCheck }> {
  const { vendor, licenseId, apiKey } = one
  const license = await readLicense(one)
  const machines = await readMachines(one)
  const rules = await readList(one, 'access-rules', accessRule)
  const world: World = {
    products: [],
    licenses: [licenseRecord(vendor, license)],
    rules: rules.map((rule) => ruleRecord(vendor, rule)),
    machines: machines.map((machine) => ({
      licenseId: uuidToBytes(licenseId),
      machineId: Buffer.from(machine.machineId),
    })),
  }
  const given = {
    organizationId: uuidToBytes(vendor.id),
    productId: apiKey.productId === null ? null : uuidToBytes(apiKey.productId),
    licenseKey: Buffer.from(license.key),
    machineId: machineId === null ? null : Buffer.from(machineId),
    address: parseNetwork(ip),
    country: null,
  }
  return { world, given }
}

/** Sends a check, and compares the verdict and the slots of the license with the model. */
async function check(one: Subject, sent: Sent): Promise<void> {
  const before = await readLicense(one)
  const { world, given } = await stateFor(one, sent)
  const expected = naiveDecide(world, given, Date.now())
  one.expected.push(expected)
  const send = () =>
    fetch(`http://127.0.0.1:${validator.port}/api/v2/license/validate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${one.apiKey.secret}`, 'x-forwarded-for': sent.ip },
      body: JSON.stringify({ license: before.key, fingerprint: sent.machineId }),
    })
  // A claim that waits too long on a busy machine gets 503, and is not recorded.
  const response = await patiently(send)
  const verdict = verdictV2.parse(await response.json())
  expect(verdict.code).toBe(expected.code)
  const after = await readLicense(one)
  expect(after.machines.used - before.machines.used).toBe(isClaim(expected) ? 1 : 0)
  const starts = isStart(expected)
  expect(after.policy.expiresAt !== before.policy.expiresAt).toBe(starts)
  // The next check may be decided in memory, so it must find the start of the term there.
  if (starts) await change(one, 'POST', 'api-keys', { name: 'a change that follows' })
  if (!verdict.valid) return
  expect(verdict.expiresAt).toBe(after.policy.expiresAt)
  const graceEndsAt = expected.graceEndsAtMs === 0 ? undefined : new Date(expected.graceEndsAtMs).toISOString()
  expect('graceEndsAt' in verdict ? verdict.graceEndsAt : undefined).toBe(graceEndsAt)
}

/** Requests a file for an app, and compares the outcome and the end of the file with the model. No file takes a slot. */
async function requestFile(one: Subject, sent: Sent): Promise<void> {
  const { world, given } = await stateFor(one, sent)
  const verdict = naiveDecide(world, given, Date.now())
  const code = naiveAppFile(verdict, Date.now())
  const before = await readLicense(one)
  const response = await harness.call('POST', 'licenses/file', {
    token: one.apiKey.secret,
    headers: { 'x-forwarded-for': sent.ip },
    body: { licenseKey: before.key, fingerprint: sent.machineId },
  })
  expect(outcome(response)).toBe(code === 'VALID' ? '200' : `409 ${code}`)
  expect((await readLicense(one)).machines.used).toBe(before.machines.used)
  if (code !== 'VALID') return
  const machine = (await readMachines(one)).find(({ machineId }) => machineId === sent.machineId)
  one.files.push(machine?.machineId ?? '')
  const { leaseSeconds } = before.policy
  const isBound = filesEndWithLease(before.policy)
  const leaseEnd = verdict.excluded ? null : (machine?.leaseEndsAt ?? null)
  const lifetimeMs = isBound && leaseSeconds !== null ? leaseSeconds * 1_000 : 30 * DAY_MS
  expectEnd(response.text, before, (issuedAtMs) =>
    isBound && leaseEnd !== null ? Date.parse(leaseEnd) : issuedAtMs + lifetimeMs,
  )
}

/** Requests a file that only the machine m-1 can use, and compares the outcome, the slot and the end of the file with the model. */
async function issueMachineFile(one: Subject): Promise<void> {
  const { world, given } = await stateFor(one, INSIDE)
  const { code, isClaim } = naiveMachineFile(world, given, Date.now())
  const before = await readLicense(one)
  const body = { machineId: INSIDE.machineId }
  const headers = { prefer: 'wait=10' }
  const response = await one.vendor.call('POST', `licenses/${one.licenseId}/file`, { body, headers })
  expect(outcome(response)).toBe(code === 'VALID' ? '200' : `409 ${code}`)
  expect((await readLicense(one)).machines.used - before.machines.used).toBe(isClaim ? 1 : 0)
  if (code !== 'VALID') return
  const { machineId, leaseEndsAt } = (await readMachines(one)).find((each) => each.machineId === INSIDE.machineId)!
  one.files.push(machineId)
  one.fileEvents.push('license.file_issued', ...(isClaim ? ['machine.activated'] : []))
  const endsAt = expectEnd(response.text, before, (issuedAtMs) => issuedAtMs + 30 * DAY_MS)
  expect(leaseEndsAt).toBe(endsAt)
}

/** Compares the end of a file with `end`, or with the end of the license if that is sooner. Returns the end. */
function expectEnd(text: string, license: z.output<typeof licenseSchema>, end: (issuedAtMs: number) => number): string {
  const payload = parsePayload(Buffer.from(text.split('.')[0] ?? '', 'base64url'))
  const { expiresAt, graceDays } = license.policy
  const licenseEndMs = expiresAt === null ? Infinity : Date.parse(expiresAt) + graceDays * DAY_MS
  const endMs = Math.min(licenseEndMs, end(Date.parse(payload?.issuedAt ?? '')))
  expect(payload?.refreshAfter).toBe(new Date(endMs).toISOString())
  return payload?.refreshAfter ?? ''
}

const isClaim = ({ code, slot }: NaiveVerdict) => code === 'VALID' && slot === 'claim'
const isStart = ({ code, slot, license }: NaiveVerdict) =>
  code === 'VALID' && license?.expiresAtMs === NOT_STARTED && (slot === 'claim' || slot === 'start')

function tally(names: readonly string[], counts: readonly number[] = names.map(() => 1)): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const [i, name] of names.entries()) sums[name] = (sums[name] ?? 0) + (counts[i] ?? 0)
  return Object.fromEntries(Object.entries(sums).filter(([, count]) => count > 0))
}

const EVENTS: ReadonlySet<string> = new Set(['machine.activated', 'license.started', 'license.file_issued'])

/** Returns the counters, the analytics, the activity and the events of all checks. */
async function recordsOf(one: Subject): Promise<object> {
  const { vendor, licenseId } = one
  const rules = await readList(one, 'access-rules', accessRule)
  const analytics = await vendor.call('GET', 'analytics/checks?groupBy=code')
  const { data } = expectBody(analytics, 200, checkCounts)
  const entries = await readList(one, `licenses/${licenseId}/activity`, activityEntry)
  const checks = entries.filter(({ type }) => type === 'CHECK')
  const files = entries.filter(({ type }) => type === 'FILE_ISSUED')
  const events = (await readList(one, 'events', z.object({ type: z.string() }))).map(({ type }) => type)
  return {
    matches: tally(
      rules.map(({ id }) => id),
      rules.map(({ matchCount }) => matchCount),
    ),
    analytics: tally(
      data.map(({ code }) => code ?? ''),
      data.map(({ count }) => count),
    ),
    activity: tally(
      checks.map(({ code }) => code ?? ''),
      checks.map(({ count }) => count),
    ),
    files: tally(
      files.map(({ machineId }) => machineId ?? ''),
      files.map(({ count }) => count),
    ),
    events: tally(events.filter((type) => EVENTS.has(type))),
    alerts: events.includes('license.limit_exceeded'),
  }
}

/** Returns the records that the checks must cause according to the model. */
function expectedRecords({ expected, files, fileEvents }: Subject): object {
  const recorded = expected.filter(({ excluded }) => !excluded)
  const codes = (list: readonly NaiveVerdict[]) => tally(list.map(({ code }) => code))
  return {
    matches: tally(expected.flatMap(({ matched }) => matched.map(({ id }) => idText(id)))),
    analytics: codes(recorded),
    activity: codes(recorded.filter(({ license }) => license !== null)),
    files: tally(files),
    events: tally([
      ...fileEvents,
      ...expected.filter(isClaim).map(() => 'machine.activated'),
      ...expected.filter(isStart).map(() => 'license.started'),
    ]),
    alerts: recorded.some(({ code }) => code === 'TOO_MANY_MACHINES'),
  }
}

function idText(id: Uint8Array): string {
  return Buffer.from(id)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

const names = Object.keys(FEATURES)
const pairs = names.flatMap((first) => names.map((second) => ({ first, second })))

test.concurrent.for(pairs)('$first, then $second', async ({ first, second }) => {
  const vendor = await createVendor(patient(harness))
  const { id } = await vendor.license({ policy: POLICY })
  const one: Subject = {
    vendor,
    licenseId: id,
    apiKey: { secret: vendor.apiKey, productId: null },
    expected: [],
    files: [],
    fileEvents: [],
  }
  await FEATURES[first]!(one)
  if (first !== second) await FEATURES[second]!(one)
  for (const sent of CHECKS) await check(one, sent)
  for (const sent of [INSIDE, OUTSIDE, { ...INSIDE, machineId: 'm-4' }]) await requestFile(one, sent)
  const isRecorded = async () => expect(await recordsOf(one)).toEqual(expectedRecords(one))
  await vi.waitFor(isRecorded, { timeout: 40_000, interval: 500 })
})
