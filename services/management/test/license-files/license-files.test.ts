/**
 * Verifies license files with OpenSSL and with packages/license-file, also after rotations of the signing key and of the master key.
 */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { machine as machineSchema, page } from '@keyward/contract'
import { activityEntry } from '@keyward/contract/management/activity'
import { auditEntry } from '@keyward/contract/management/audit'
import { signingKey } from '@keyward/contract/management/signing-keys'
import { judgeLicenseFile, parsePayload, spkiToPublicKey, verifyLicenseFile } from '@keyward/license-file'
import { startValidatorProcess } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

import { environment } from '../../src/config.ts'
import { createKeyring } from '../../src/keyring/keyring.ts'
import { startManagement } from '../../src/server.ts'
import { masterKey, operatorToken, startHarnessWithValidator } from '../support/harness.ts'
import { insertMachine } from '../support/requests.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Awaited<ReturnType<typeof startHarnessWithValidator>>
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarnessWithValidator()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

async function publicKeys() {
  const { data } = expectBody(await vendor.call('GET', 'signing-keys'), 200, page(signingKey))
  return data
}

async function verificationKeys() {
  return (await publicKeys()).map(({ keyId, publicKey }) => ({
    keyId,
    publicKey: spkiToPublicKey(publicKey) ?? new Uint8Array(),
  }))
}

async function download(id: string): Promise<string> {
  const response = await vendor.call('GET', `licenses/${id}/file`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/)
  expect(response.headers.get('content-disposition')).toBe(`attachment; filename="license-${id}.lic"`)
  return response.text
}

const payloadOf = (file: string) => Buffer.from(file.split('.')[0] ?? '', 'base64url')

function opensslVerifies(file: string, publicKey: string): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-openssl-'))
  const path = (name: string) => join(folder, name)
  try {
    writeFileSync(path('key.der'), Buffer.from(publicKey, 'base64'))
    writeFileSync(path('payload'), payloadOf(file))
    writeFileSync(path('signature'), Buffer.from(file.split('.')[1] ?? '', 'base64url'))
    const key = ['-pubin', '-inkey', path('key.der'), '-keyform', 'DER']
    const data = ['-rawin', '-in', path('payload'), '-sigfile', path('signature')]
    return execFileSync('openssl', ['pkeyutl', '-verify', ...key, ...data], { encoding: 'utf8' }).includes(
      'Successfully',
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const withoutOpenssl = (() => {
  try {
    execFileSync('openssl', ['version'])
    return false
  } catch {
    return true
  }
})()

describe('the license file for a vendor', () => {
  test('a license file contains the documented payload and a valid signature', async () => {
    const expiresAt = new Date(Date.now() + 5 * 86_400_000).toISOString()
    const license = await vendor.license({ policy: { type: 'SUBSCRIPTION', maxMachines: 2, expiresAt } })
    const file = await download(license.id)
    const payload = parsePayload(payloadOf(file))
    expect(payload).toMatchObject({ licenseKey: license.key, licenseId: license.id, customerEmail: 'ada@example.com' })
    expect(payload).toMatchObject({
      policy: { type: 'SUBSCRIPTION', maxMachines: 2, expiresAt },
      refreshAfter: expiresAt,
    })
    const [key] = await publicKeys()
    expect(payload?.kid).toBe(key?.keyId)
    expect(verifyLicenseFile(file, await verificationKeys())).toMatchObject({ ok: true })
    const perpetual = parsePayload(payloadOf(await download((await vendor.license()).id)))
    const lifetime = Date.parse(perpetual?.refreshAfter ?? '') - Date.parse(perpetual?.issuedAt ?? '')
    expect(lifetime).toBe(30 * 86_400_000)
  })

  test('a license file ends after fileDays, or with the grace period', async () => {
    const at = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
    const policy = { type: 'SUBSCRIPTION', expiresAt: at(-2), graceDays: 5, fileDays: 366 }
    const license = await vendor.license({ policy })
    const inGrace = parsePayload(payloadOf(await download(license.id)))
    expect(inGrace?.policy).toMatchObject({ expiresAt: policy.expiresAt, graceEndsAt: license['graceEndsAt'] })
    expect(inGrace?.refreshAfter).toBe(license['graceEndsAt'])
    const short = await vendor.license({ policy: { type: 'PERPETUAL', fileDays: 1, graceDays: 90 } })
    const payload = parsePayload(payloadOf(await download(short.id)))
    expect(Date.parse(payload?.refreshAfter ?? '') - Date.parse(payload?.issuedAt ?? '')).toBe(86_400_000)
    expect(payload?.policy).not.toHaveProperty('graceEndsAt')
  })

  test('a license file of a license with leases is valid as long as a lease, unless fileDays is set', async () => {
    const lifetime = async (policy: object) => {
      const { id } = await vendor.license({ policy: { type: 'PERPETUAL', leaseSeconds: 600, ...policy } })
      const payload = parsePayload(payloadOf(await download(id)))
      return (Date.parse(payload?.refreshAfter ?? '') - Date.parse(payload?.issuedAt ?? '')) / 1_000
    }
    expect(await lifetime({ maxMachines: 1 })).toBe(600)
    expect(await lifetime({ maxMachines: 1, fileDays: 2 })).toBe(2 * 86_400)
    expect(await lifetime({ maxMachines: null })).toBe(30 * 86_400)
  })

  test('OpenSSL accepts the signature of a license file', async (context) => {
    context.skip(withoutOpenssl, 'openssl is not installed')
    const file = await download((await vendor.license()).id)
    const [key] = await publicKeys()
    expect(opensslVerifies(file, key?.publicKey ?? '')).toBe(true)
  })

  test('a license file is issued only for an active license', async () => {
    const past = { type: 'TRIAL', expiresAt: new Date(Date.now() - 1_000).toISOString() }
    const expired = await vendor.license({ policy: past })
    const suspended = await vendor.license()
    await vendor.call('POST', `licenses/${suspended.id}/suspend`)
    const revoked = await vendor.license()
    await vendor.call('POST', `licenses/${revoked.id}/revoke`)
    for (const [{ id }, code] of [
      [expired, 'EXPIRED'],
      [suspended, 'SUSPENDED'],
      [revoked, 'REVOKED'],
    ] as const)
      expect(outcome(await vendor.call('GET', `licenses/${id}/file`))).toBe(`409 ${code}`)
  })
})

describe('the license file for an app', () => {
  const request = (licenseKey: string, fingerprint?: string | null) =>
    harness.call('POST', 'licenses/file', { token: vendor.apiKey, body: { licenseKey, fingerprint } })

  test('an app gets a file only if a check would be VALID, and takes no slot', async () => {
    const unlimited = await vendor.license({ policy: { type: 'PERPETUAL' } })
    expect((await request(unlimited.key)).status).toBe(200)
    const limited = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 1 } })
    expect(outcome(await request(limited.key))).toBe('409 FINGERPRINT_REQUIRED')
    expect(outcome(await request(limited.key, 'm1'))).toBe('409 MACHINE_NOT_ACTIVE')
    const leased = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 1, leaseSeconds: 600 } })
    await insertMachine({ harness, vendor }, leased.id, 'm1')
    const lease = 'update machines set lease_ends_at = now() + $2::interval where license_id = $1'
    await harness.database.pool.query(lease, [leased.id, '1 hour'])
    expect((await request(leased.key, 'm1')).status).toBe(200)
    expect(outcome(await request(leased.key, 'm2'))).toBe('409 TOO_MANY_MACHINES')
    await harness.database.pool.query(lease, [leased.id, '-1 hour'])
    for (const machine of ['m1', 'm2'])
      expect(outcome(await request(leased.key, machine))).toBe('409 MACHINE_NOT_ACTIVE')
    for (const maxMachines of [null, 1]) {
      const trial = await vendor.license({ policy: { type: 'TRIAL', durationDays: 7, maxMachines } })
      expect(outcome(await request(trial.key, 'm1'))).toBe('409 NOT_STARTED')
    }
    await insertMachine({ harness, vendor }, limited.id, 'm1')
    const response = await request(limited.key, 'm1')
    expect(response.status).toBe(200)
    expect(verifyLicenseFile(response.text, await verificationKeys())).toMatchObject({ ok: true })
    expect(outcome(await request(limited.key, 'm2'))).toBe('409 TOO_MANY_MACHINES')
    expect(outcome(await request('no such key'))).toBe('409 NOT_FOUND')
    await vendor.rule({ kind: 'EXCLUSION', type: 'HWID', value: 'm2', scope: 'LICENSE', scopeId: limited.id })
    expect((await request(limited.key, 'm2')).status).toBe(200)
    const { rows } = await harness.database.pool.query('select used from license_slots where license_id = $1', [
      limited.id,
    ])
    expect(rows).toEqual([{ used: 1 }])
  })

  test("a license file ends with the machine's lease, unless fileDays is set", async () => {
    const policy = { type: 'PERPETUAL', maxMachines: 1, leaseSeconds: 600 }
    const { id, key } = await vendor.license({ policy })
    await insertMachine({ harness, vendor }, id, 'm1')
    const setLease = 'update machines set lease_ends_at = $2 where license_id = $1'
    const leaseEnd = new Date(Date.now() + 120_000)
    await harness.database.pool.query(setLease, [id, leaseEnd])
    const end = async (machine: string) => parsePayload(payloadOf((await request(key, machine)).text))?.refreshAfter
    expect(await end('m1')).toBe(leaseEnd.toISOString())
    // An excluded machine holds no slot, so its file is as long as a lease would be.
    await vendor.rule({ kind: 'EXCLUSION', type: 'HWID', value: 'm2', scope: 'LICENSE', scopeId: id })
    const remaining = Date.parse((await end('m2')) ?? '') - Date.now()
    expect(remaining).toBeGreaterThan(120_000)
    expect(remaining).toBeLessThanOrEqual(600_000)
    await vendor.call('PATCH', `licenses/${id}`, { body: { policy: { fileDays: 2 } }, headers: { prefer: 'wait=10' } })
    expect(Date.parse((await end('m1')) ?? '')).toBeGreaterThan(Date.now() + 86_400_000)
  })

  test('an app may send the license keys and machine ids that a check accepts', async () => {
    const unlimited = await vendor.license({ policy: { type: 'PERPETUAL' } })
    const limited = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 1 } })
    for (const absent of [undefined, null, '']) {
      expect((await request(unlimited.key, absent)).status).toBe(200)
      expect(outcome(await request(limited.key, absent))).toBe('409 FINGERPRINT_REQUIRED')
    }
    for (const key of ['x'.repeat(129), 'x'.repeat(10_000), 'ü'.repeat(65), `${limited.key}\u0000`])
      expect(outcome(await request(key, 'm1'))).toBe('409 NOT_FOUND')
    for (const [key, machine] of [
      ['', 'm1'],
      ['\ud800', 'm1'],
      [limited.key, '\ud800'],
      [limited.key, 'x'.repeat(513)],
    ] as const)
      expect(outcome(await request(key, machine))).toBe('422 INVALID_REQUEST')
  })

  test('combines the files that apps fetch in a day in one activity entry for each recorded machine, and in one for all others', async () => {
    const license = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 2 } })
    await insertMachine({ harness, vendor }, license.id, 'm1')
    const unlimited = await vendor.license({ policy: { type: 'PERPETUAL' } })
    await Promise.all(Array.from({ length: 6 }, () => request(license.key, 'm1')))
    await download(license.id)
    // For a license without a machine limit, a caller can invent machine ids.
    for (const invented of ['a', 'b', 'c']) expect((await request(unlimited.key, invented)).status).toBe(200)
    expect(outcome(await request(license.key, 'm2'))).toBe('409 MACHINE_NOT_ACTIVE')
    const issued = async (id: string) => {
      const { data } = expectBody(await vendor.call('GET', `licenses/${id}/activity`), 200, page(activityEntry))
      return data.filter(({ type }) => type === 'FILE_ISSUED')
    }
    const entries = await issued(license.id)
    expect(entries).toHaveLength(2)
    expect(entries).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          machineId: 'm1',
          count: 6,
          actor: expect.objectContaining({ type: 'API_KEY' }) as unknown,
        }),
        expect.objectContaining({ count: 1, actor: expect.objectContaining({ type: 'MANAGEMENT_TOKEN' }) as unknown }),
      ]),
    )
    expect(await issued(unlimited.id)).toEqual([expect.objectContaining({ count: 3 })])
    expect(entries.every(({ at, firstAt }) => Math.abs(Date.parse(at) - Date.parse(firstAt)) < 1_000)).toBe(true)
    const from = new Date(Date.now() - 300_000).toISOString()
    const recent = await vendor.call('GET', `licenses/${license.id}/activity?from=${from}`)
    expect(expectBody(recent, 200, page(activityEntry)).data).toEqual(expect.arrayContaining(entries))
  })

  test('records no file for a HEAD, which returns the length of the file', async () => {
    const license = await vendor.license()
    const head = await vendor.call('HEAD', `licenses/${license.id}/file`)
    expect([head.status, head.text]).toEqual([200, ''])
    expect(head.headers.get('content-length')).toBe(String((await download(license.id)).length))
    const { data } = expectBody(await vendor.call('GET', `licenses/${license.id}/activity`), 200, page(activityEntry))
    expect(data.find(({ type }) => type === 'FILE_ISSUED')).toMatchObject({ count: 1 })
  })

  test('issues a file to each of many concurrent apps according to its own check', async () => {
    const unlimited = await vendor.license({ policy: { type: 'PERPETUAL' } })
    const limited = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 1 } })
    await insertMachine({ harness, vendor }, limited.id, 'm1')
    const suspended = await vendor.license()
    await vendor.call('POST', `licenses/${suspended.id}/suspend`)
    const other = await createVendor(harness)
    const expected: [key: string, machine: string | null, outcome: string][] = [
      [unlimited.key, 'm1', '200'],
      [limited.key, 'm1', '200'],
      [limited.key, 'm2', '409 TOO_MANY_MACHINES'],
      [limited.key, null, '409 FINGERPRINT_REQUIRED'],
      [suspended.key, 'm1', '409 SUSPENDED'],
      [(await other.license()).key, 'm1', '409 NOT_FOUND'],
      ['x'.repeat(129), 'm1', '409 NOT_FOUND'],
    ]
    const requests = Array.from({ length: 8 }, () => expected).flat()
    const responses = await Promise.all(requests.map(([key, machine]) => request(key, machine)))
    expect(responses.map(outcome)).toEqual(requests.map(([, , wanted]) => wanted))
    const issued = responses.map(({ status, text }) =>
      status === 200 ? parsePayload(payloadOf(text))?.licenseKey : null,
    )
    expect(issued).toEqual(requests.map(([key, , wanted]) => (wanted === '200' ? key : null)))
  })

  test("issues no file when a rule blacklists the caller's address", async () => {
    const license = await vendor.license({ policy: { type: 'PERPETUAL' } })
    await vendor.rule({ value: '127.0.0.0/8', scope: 'LICENSE', scopeId: license.id })
    const rejected = await request(license.key)
    expect(outcome(rejected)).toBe('409 BLACKLISTED')
    expect(rejected.text).not.toContain('127.')
    await vendor.rule({ kind: 'EXCLUSION', value: '127.0.0.1', scope: 'LICENSE', scopeId: license.id })
    expect((await request(license.key)).status).toBe(200)
  })
})

describe('the license file for one machine', () => {
  const DAY_MS = 86_400_000
  const issue = (id: string, body: object, call = vendor.call) => call('POST', `licenses/${id}/file`, { body })
  const check = async (key: string, fingerprint: string, path = 'validate', { port } = harness.validator) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${vendor.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ licenseKey: key, fingerprint }),
    })
    return z.looseObject({ code: z.string().optional() }).parse(await response.json())
  }
  const machinesOf = async (id: string) =>
    expectBody(await vendor.call('GET', `licenses/${id}/machines`), 200, page(machineSchema)).data

  test('only its machine can use it, and the machine holds a slot until the file ends', async () => {
    const license = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 1 } })
    const response = await issue(license.id, { machineId: 'm1', hostname: 'plant-3', days: 5 })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-disposition')).toBe(`attachment; filename="license-${license.id}.lic"`)
    const payload = parsePayload(payloadOf(response.text))
    expect(payload).toMatchObject({ licenseKey: license.key, machineId: 'm1' })
    const endsAt = payload?.refreshAfter ?? ''
    expect(Date.parse(endsAt) - Date.parse(payload?.issuedAt ?? '')).toBe(5 * DAY_MS)
    const facts = { keys: await verificationKeys(), licenseKey: license.key, nowMs: Date.now(), latestSeenMs: 0 }
    const judged = (machineId: string) => judgeLicenseFile(response.text, { ...facts, machineId })
    expect(judged('m1')).toMatchObject({ ok: true })
    expect(judged('m2')).toEqual({ ok: false, reason: 'WRONG_MACHINE' })
    expect(await machinesOf(license.id)).toMatchObject([{ machineId: 'm1', hostname: 'plant-3', leaseEndsAt: endsAt }])
    expect(outcome(await issue(license.id, { machineId: 'm2' }))).toBe('409 TOO_MANY_MACHINES')
    // A longer file keeps the slot longer, and a shorter one does not shorten it.
    for (const days of [9, 2]) expect((await issue(license.id, { machineId: 'm1', days })).status).toBe(200)
    const [longer] = await machinesOf(license.id)
    expect(Date.parse(longer?.leaseEndsAt ?? '')).toBeGreaterThan(Date.parse(endsAt))
    const log = await vendor.call('GET', `audit-log?resourceId=${license.id}&action=license.file_issued`)
    expect(expectBody(log, 200, page(auditEntry)).data.at(-1)?.changes).toEqual({
      machineId: 'm1',
      hostname: 'plant-3',
      endsAt,
    })
    const events = await vendor.call('GET', `events?type=license.file_issued&resourceId=${license.id}`)
    expect(events.text).toContain(`"machineId":"m1","endsAt":"${endsAt}"`)
  })

  test('apps cannot release its slot, which the next machine takes when the file has ended, also after a restart', async () => {
    const license = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 1 } })
    expect((await issue(license.id, { machineId: 'm1' })).status).toBe(200)
    await expect.poll(() => check(license.key, 'm1')).toMatchObject({ valid: true })
    await expect.poll(() => check(license.key, 'm1', 'deactivate')).toMatchObject({ deactivated: false })
    expect(await check(license.key, 'm2')).toMatchObject({ valid: false, code: 'TOO_MANY_MACHINES' })
    const restarted = await startValidatorProcess(harness.database)
    onTestFinished(() => restarted.stop())
    await expect
      .poll(() => check(license.key, 'm2', 'validate', restarted))
      .toMatchObject({ code: 'TOO_MANY_MACHINES' })
    const end = 'update machines set file_ends_at = now(), lease_ends_at = now() where license_id = $1'
    await harness.database.pool.query(end, [license.id])
    await expect.poll(() => check(license.key, 'm2', 'validate', restarted)).toMatchObject({ valid: true })
    await expect.poll(() => check(license.key, 'm1')).toMatchObject({ code: 'TOO_MANY_MACHINES' })
    expect((await machinesOf(license.id)).map(({ machineId }) => machineId)).toEqual(['m2'])
  })

  test('it ends with the license, and never after fileDays', async () => {
    const at = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()
    const policy = { type: 'SUBSCRIPTION', maxMachines: 1, expiresAt: at(3), graceDays: 1, fileDays: 7 }
    const { id, ...license } = await vendor.license({ policy })
    expect(parsePayload(payloadOf((await issue(id, { machineId: 'm1' })).text))?.refreshAfter).toBe(
      license['graceEndsAt'],
    )
    const tooLong = await issue(id, { machineId: 'm1', days: 8 })
    expect([outcome(tooLong), tooLong.text]).toEqual(['422 INVALID_REQUEST', expect.stringContaining('at most 7')])
    const leased = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 1, leaseSeconds: 60 } })
    const payload = parsePayload(payloadOf((await issue(leased.id, { machineId: 'm1' })).text))
    expect(Date.parse(payload?.refreshAfter ?? '') - Date.parse(payload?.issuedAt ?? '')).toBe(30 * DAY_MS)
    expect((await machinesOf(leased.id))[0]?.leaseEndsAt).toBe(payload?.refreshAfter)
  })

  test('a license that allows no file, or of another organization, gives none and loses no slot', async () => {
    const suspended = await vendor.license()
    await vendor.call('POST', `licenses/${suspended.id}/suspend`)
    expect(outcome(await issue(suspended.id, { machineId: 'm1' }))).toBe('409 SUSPENDED')
    const trial = await vendor.license({ policy: { type: 'TRIAL', durationDays: 7, maxMachines: 1 } })
    expect(outcome(await issue(trial.id, { machineId: 'm1' }))).toBe('409 NOT_STARTED')
    const foreign = await (await createVendor(harness)).license()
    expect(outcome(await issue(foreign.id, { machineId: 'm1' }))).toBe('404 NOT_FOUND')
    expect(outcome(await issue(suspended.id, { machineId: '' }))).toBe('422 INVALID_REQUEST')
    for (const { id } of [suspended, trial]) expect(await machinesOf(id)).toEqual([])
  })

  test('concurrent requests never issue files for more machines than the license has slots', async () => {
    const license = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 3 } })
    const responses = await Promise.all(
      Array.from({ length: 12 }, (_, machine) => issue(license.id, { machineId: `m${machine}` })),
    )
    const issued = responses.flatMap(({ status, text }) =>
      status === 200 ? [parsePayload(payloadOf(text))?.machineId] : [],
    )
    expect(issued).toHaveLength(3)
    expect((await machinesOf(license.id)).map(({ machineId }) => machineId).toSorted()).toEqual(
      issued.map(String).toSorted(),
    )
  })
})

describe('signing keys', () => {
  test('a rotation keeps older files valid, and the new key signs new files', async () => {
    const { id } = await vendor.license()
    const [before] = await publicKeys()
    const old = await download(id)
    const rotated = expectBody(await vendor.call('POST', 'signing-keys/rotate'), 200, signingKey)
    expect(rotated.keyId).not.toBe(before?.keyId)
    const file = await download(id)
    expect(parsePayload(payloadOf(file))?.kid).toBe(rotated.keyId)
    const keys = await verificationKeys()
    for (const one of [old, file]) expect(verifyLicenseFile(one, keys)).toMatchObject({ ok: true })
    expect(outcome(await vendor.call('POST', `signing-keys/${rotated.id}/withdraw`))).toBe('409 SIGNING_KEY_CURRENT')
    const withdrawn = await vendor.call('POST', `signing-keys/${before?.id}/withdraw`)
    expect(expectBody(withdrawn, 200, signingKey).withdrawnAt).not.toBeNull()
  })

  test('a prepared key becomes current at the next rotation', async () => {
    const own = await createVendor(harness)
    const { id } = await own.license()
    const headers = { prefer: 'wait=10' }
    const prepare = async () => expectBody(await own.call('POST', 'signing-keys/prepare', { headers }), 200, signingKey)
    const published = async (path: string) => {
      const url = `http://127.0.0.1:${harness.validator.port}/api/v1/${path}`
      return (await fetch(url, { headers: { authorization: `Bearer ${own.apiKey}` } })).text()
    }
    const list = async () => expectBody(await own.call('GET', 'signing-keys'), 200, page(signingKey)).data
    const [first, ...others] = await Promise.all(Array.from({ length: 5 }, prepare))
    expect(new Set([first, ...others].map((key) => key?.keyId)).size).toBe(1)
    expect(first).toMatchObject({ preparedAt: expect.any(String) as unknown, retiredAt: null })
    expect(await published('public-keys')).toContain(`"${first?.keyId}"`)
    expect(await published('public-key')).not.toContain(`"${first?.keyId}"`)
    const kid = async () => parsePayload(payloadOf((await own.call('GET', `licenses/${id}/file`)).text))?.kid
    expect(await kid()).not.toBe(first?.keyId)
    const rotated = expectBody(await own.call('POST', 'signing-keys/rotate', { headers }), 200, signingKey)
    expect(await published('public-key')).toContain(`"${first?.keyId}"`)
    expect(rotated).toEqual({ ...first, preparedAt: null })
    expect(await kid()).toBe(first?.keyId)
    expect((await list()).filter((key) => key.retiredAt === null)).toHaveLength(1)
    // A prepared key that is withdrawn never signs.
    const second = await prepare()
    expect(outcome(await own.call('POST', `signing-keys/${second.id}/withdraw`))).toBe('200')
    const third = expectBody(await own.call('POST', 'signing-keys/rotate'), 200, signingKey)
    expect([first?.keyId, second.keyId]).not.toContain(third.keyId)
    expect(await list()).toHaveLength(4)
  })

  test('exactly one key is current after concurrent rotations', async () => {
    const own = await createVendor(harness)
    const responses = await Promise.all(Array.from({ length: 10 }, () => own.call('POST', 'signing-keys/rotate')))
    expect(responses.map((response) => response.status)).toEqual(Array.from({ length: 10 }, () => 200))
    const { data } = expectBody(await own.call('GET', 'signing-keys'), 200, page(signingKey))
    expect(data.filter((key) => key.retiredAt === null)).toHaveLength(1)
    expect(data).toHaveLength(11)
  })

  test('a sealed key cannot be opened in another row or after a modification', () => {
    const keyring = createKeyring(Buffer.from(masterKey, 'hex'), null)
    const privateKeyEncrypted = keyring.seal('org', 'kid', Buffer.from('secret'))
    const sealed = { organizationId: 'org', keyId: 'kid', masterKeyId: keyring.currentId, privateKeyEncrypted }
    expect(keyring.open(sealed).toString()).toBe('secret')
    expect(() => keyring.open({ ...sealed, organizationId: 'other' })).toThrow(/authenticate/)
    expect(() => keyring.open({ ...sealed, keyId: 'other' })).toThrow(/authenticate/)
    for (let i = 0; i < privateKeyEncrypted.length; i++) {
      const flipped = Buffer.from(privateKeyEncrypted)
      flipped[i] = (flipped[i] ?? 0) ^ 1
      expect(() => keyring.open({ ...sealed, privateKeyEncrypted: flipped })).toThrow(/authenticate/)
    }
  })

  test('a sealed key that was opened signs only while all its columns stay the same', async () => {
    const keyring = createKeyring(Buffer.from(masterKey, 'hex'), null)
    const privateKeyEncrypted = keyring.seal('org', 'kid', Buffer.alloc(32, 7))
    const sealed = { organizationId: 'org', keyId: 'kid', masterKeyId: keyring.currentId, privateKeyEncrypted }
    const signature = await keyring.sign(sealed, Buffer.from('text'))
    expect(signature).toHaveLength(64)
    expect(await keyring.sign(sealed, Buffer.from('text'))).toEqual(signature)
    const flipped = Buffer.from(privateKeyEncrypted)
    flipped[20] = (flipped[20] ?? 0) ^ 1
    for (const other of [{ organizationId: 'other' }, { keyId: 'other' }, { privateKeyEncrypted: flipped }])
      await expect(keyring.sign({ ...sealed, ...other }, Buffer.from('text'))).rejects.toThrow(/authenticate/)
    await expect(keyring.sign({ ...sealed, masterKeyId: 'other' }, Buffer.from('text'))).rejects.toThrow(/master key/)
  })

  test('signing keys are sealed again when the master key changes, which requires the old master key at the start', async () => {
    const base = { DATABASE_URL: harness.database.url, OPERATOR_TOKEN: operatorToken, LOG_LEVEL: 'silent' }
    const ports = { MANAGEMENT_PORT: '0', MANAGEMENT_ADMIN_PORT: '0' }
    const start = (env: Record<string, string>) => startManagement(environment.parse({ ...base, ...ports, ...env }))
    const next = 'a7'.repeat(32)
    await expect(start({ MASTER_KEY: next })).rejects.toThrow(/master key/)
    const changed = await start({ MASTER_KEY: next, MASTER_KEY_PREVIOUS: masterKey })
    await changed.close()
    // A process that has only the old master key cannot sign.
    const rejected = await vendor.call('GET', `licenses/${(await vendor.license()).id}/file`)
    expect(outcome(rejected)).toBe('503 UNAVAILABLE')
    const back = await start({ MASTER_KEY: masterKey, MASTER_KEY_PREVIOUS: next })
    await back.close()
    await download((await vendor.license()).id)
  })
})
