/** Tests that management delegates to validators, which then sign responses (docs/api.md#g2). */

import { randomBytes } from 'node:crypto'

import { organizationDetails, page } from '@keyward/contract'
import { signingKey } from '@keyward/contract/management/signing-keys'
import { spkiToPublicKey, type VerificationKey, verifyAnswer } from '@keyward/license-file'
import type { ValidatorProcess } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { z } from 'zod'

import { type Harness, startHarnessWithValidator } from '../support/harness.ts'
import { createVendor, expectBody } from '../support/vendor.ts'

const PATH = '/api/v2/license/validate'
const HOUR_MS = 3_600_000
let harness: Harness & { validator: ValidatorProcess }

beforeAll(async () => {
  harness = await startHarnessWithValidator()
})
afterAll(() => harness.close())

type Vendor = Awaited<ReturnType<typeof createVendor>>

/** Returns the outcome of a check that asks for a signature under this key. */
async function check({ apiKey }: Vendor, key: VerificationKey): Promise<string> {
  const request = JSON.stringify({ license: 'x', nonce: randomBytes(16).toString('base64url'), kid: key.keyId })
  const response = await fetch(`http://127.0.0.1:${harness.validator.port}${PATH}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: request,
  })
  const verified = await verifyAnswer({
    signature: response.headers.get('keyward-signature'),
    path: PATH,
    status: response.status,
    apiKey,
    request: Buffer.from(request),
    response: Buffer.from(await response.arrayBuffer()),
    key,
    latestSignedMs: 0,
  })
  return verified.ok ? 'SIGNED' : verified.reason
}

async function changesTo(outcome: string, vendor: Vendor, key: VerificationKey): Promise<void> {
  await expect.poll(() => check(vendor, key), { timeout: 20_000 }).toBe(outcome)
}

function keyOf({ keyId, publicKey }: z.output<typeof signingKey>): VerificationKey {
  return { keyId, publicKey: spkiToPublicKey(publicKey) ?? new Uint8Array() }
}

const expectKey = (response: Parameters<typeof expectBody>[0], status: number) =>
  expectBody(response, status, signingKey)

async function currentKey({ call }: Vendor): Promise<z.output<typeof signingKey>> {
  const { data } = expectBody(await call('GET', 'signing-keys'), 200, page(signingKey))
  return data.find(({ retiredAt, preparedAt }) => retiredAt === null && preparedAt === null)!
}

test('validators sign under the current, a prepared and a replaced key, until the key is withdrawn', async () => {
  const vendor = await createVendor(harness)
  const first = await currentKey(vendor)
  await changesTo('SIGNED', vendor, keyOf(first))
  const prepared = expectKey(await vendor.call('POST', 'signing-keys/prepare'), 200)
  await changesTo('SIGNED', vendor, keyOf(prepared))
  await vendor.call('POST', 'signing-keys/rotate')
  expect(await check(vendor, keyOf(prepared))).toBe('SIGNED')
  expect(await check(vendor, keyOf(first))).toBe('SIGNED')
  expectKey(await vendor.call('POST', `signing-keys/${first.id}/withdraw`), 200)
  await changesTo('UNSIGNED', vendor, keyOf(first))
  expect(await check(vendor, keyOf(prepared))).toBe('SIGNED')
})

test('the operator switches the signing off and on', async () => {
  const vendor = await createVendor(harness)
  const key = keyOf(await currentKey(vendor))
  await changesTo('SIGNED', vendor, key)
  const set = async (signsAnswers: boolean) =>
    expectBody(
      await harness.call('PATCH', `organizations/${vendor.id}`, { body: { signsAnswers } }),
      200,
      organizationDetails,
    )
  expect((await set(false)).signsAnswers).toBe(false)
  await changesTo('UNSIGNED', vendor, key)
  const { rows } = await harness.database.pool.query(
    `select delegations, delegated_at from signing_keys where organization_id = $1`,
    [vendor.id],
  )
  expect(rows).toEqual([{ delegations: {}, delegated_at: null }])
  expect((await set(true)).signsAnswers).toBe(true)
  await changesTo('SIGNED', vendor, key)
})

test('a delegation lasts 48 hours, is renewed after 12, and outlives a stopped validator until its end', async () => {
  const vendor = await createVendor(harness)
  const key = await currentKey(vendor)
  const { pool } = harness.database
  const read = async () => {
    const { rows } = await pool.query<{ delegations: Record<string, { notBefore: string; notAfter: string }> }>(
      'select delegations from signing_keys where id = $1',
      [key.id],
    )
    return rows[0]!.delegations
  }
  await changesTo('SIGNED', vendor, keyOf(key))
  const [own = ''] = Object.keys(await read())
  const { notBefore, notAfter } = (await read())[own]!
  expect(Date.parse(notAfter) - Date.parse(notBefore)).toBe(48 * HOUR_MS + 5 * 60_000)
  const stopped = { signed: 'a.b', notBefore, notAfter: new Date(Date.now() + HOUR_MS).toISOString() }
  const ended = { ...stopped, notAfter: new Date(Date.now() - 1).toISOString() }
  await pool.query(
    `update signing_keys set delegated_at = now() - interval '11 hours', delegations = delegations || $1 where id = $2`,
    [{ stopped, ended }, key.id],
  )
  await expect.poll(async () => (await check(vendor, keyOf(key))) === 'SIGNED').toBe(true)
  expect((await read())[own]).toMatchObject({ notAfter })
  await pool.query(`update signing_keys set delegated_at = now() - interval '12 hours' where id = $1`, [key.id])
  await expect.poll(async () => (await read())[own]?.notAfter !== notAfter, { timeout: 20_000 }).toBe(true)
  const renewed = await read()
  expect(Object.keys(renewed).toSorted()).toEqual([own, 'stopped'].toSorted())
  expect(Date.parse(renewed[own]!.notAfter)).toBeGreaterThan(Date.parse(notAfter))
})
