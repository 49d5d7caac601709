/** Tests the quota of machines (docs/api.md#s10) as a vendor, its apps and the operator see it. */

import { defaultQuota, organizationDetails, ownOrganization, plan as plans } from '@keyward/contract'
import { claimSlots, uuidToBytes } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { writeQuotaEvents } from '../../src/jobs/quota-levels.ts'
import { startHarnessWithValidator } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Awaited<ReturnType<typeof startHarnessWithValidator>>

beforeAll(async () => {
  harness = await startHarnessWithValidator()
})
afterAll(() => harness.close())

const verdict = z.object({ code: z.string() })

async function setQuota(vendor: Vendor, machines: number | null): Promise<void> {
  const response = await harness.call('PATCH', `organizations/${vendor.id}`, { body: { quotas: { machines } } })
  expectBody(response, 200, organizationDetails)
}

const quotaOf = async (vendor: Vendor) =>
  expectBody(await vendor.call('GET', 'organization'), 200, ownOrganization).quotas['machines']

/** Checks a license, again while the validator does not know it or is busy. */
async function check({ apiKey }: Vendor, license: string, fingerprint: string): Promise<string> {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${harness.validator.port}/api/v2/license/validate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ license, fingerprint }),
    })
    const { code } = verdict.parse(await response.json())
    if (response.status < 500 && code !== 'NOT_FOUND' && code !== 'UNAUTHENTICATED') return code
  }
}

test('a new machine beyond the quota is rejected until the operator raises the quota or a machine is removed', async () => {
  const vendor = await createVendor(harness)
  const [one, other] = [await vendor.license(), await vendor.license()]
  await setQuota(vendor, 2)
  expect(await check(vendor, one.key, 'a')).toBe('VALID')
  expect(await check(vendor, other.key, 'a')).toBe('VALID')
  expect(await check(vendor, one.key, 'b')).toBe('TOO_MANY_MACHINES')
  expect(await check(vendor, one.key, 'a')).toBe('VALID')
  expect(await quotaOf(vendor)).toEqual({ used: 2, limit: 2 })
  const file = await vendor.call('POST', `licenses/${one.id}/file`, { body: { machineId: 'b' } })
  expect(outcome(file)).toBe('409 TOO_MANY_MACHINES')
  await setQuota(vendor, 3)
  expect(await check(vendor, one.key, 'b')).toBe('VALID')
  expect(await check(vendor, one.key, 'c')).toBe('TOO_MANY_MACHINES')
  const listed = z.object({ data: z.array(z.object({ id: z.string() })) })
  const { data } = expectBody(await vendor.call('GET', `licenses/${other.id}/machines`), 200, listed)
  expect((await vendor.call('DELETE', `licenses/${other.id}/machines/${data[0]?.id}`)).status).toBe(204)
  expect(await quotaOf(vendor)).toEqual({ used: 2, limit: 3 })
  expect(await check(vendor, one.key, 'c')).toBe('VALID')
  expect((await vendor.call('DELETE', `licenses/${one.id}`)).status).toBe(204)
  expect(await quotaOf(vendor)).toEqual({ used: 0, limit: 3 })
})

test('a license without a limit stays valid for every machine, and its machines are recorded up to 80 % of the quota', async () => {
  const vendor = await createVendor(harness)
  const { key } = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: null } })
  await setQuota(vendor, 5)
  for (let i = 0; i < 8; i++) expect(await check(vendor, key, `m${i}`)).toBe('VALID')
  await expect.poll(async () => (await quotaOf(vendor))?.used, { timeout: 60_000 }).toBe(4)
  const unrecorded = async () => {
    const { rows } = await harness.database.pool.query<{ unrecorded: number }>(
      `select unrecorded::integer from license_slots s join licenses l on l.id = s.license_id where l.organization_id = $1`,
      [vendor.id],
    )
    return rows[0]?.unrecorded
  }
  await expect.poll(unrecorded, { timeout: 60_000 }).toBeGreaterThan(0)
  expect((await quotaOf(vendor))?.used).toBe(4)
})

test.each(plans.options)('claims apply the default of the plan %s from the level of 80 % on', async (plan) => {
  const vendor = await createVendor(harness, plan)
  const { id } = await vendor.license()
  const { pool } = harness.database
  const limit = defaultQuota(plan, 'machines')
  await pool.query(`insert into organization_usage (organization_id, quota, used) values ($1, 'machines', $2)`, [
    vendor.id,
    limit - 1,
  ])
  await expect
    .poll(
      async () => {
        await writeQuotaEvents(createDatabase(pool))
        const level = await pool.query(
          `select from quota_levels where organization_id = $1 and quota = 'machines' and percent = 80`,
          [vendor.id],
        )
        return level.rowCount
      },
      { timeout: 60_000 },
    )
    .toBe(1)
  const claims = ['a', 'b'].map((name) => ({
    licenseId: uuidToBytes(id),
    machineId: Buffer.from(name),
    hostname: null,
  }))
  expect((await claimSlots(pool, claims)).map((answer) => answer.outcome)).toEqual(['granted', 'limit'])
  expect(await quotaOf(vendor)).toEqual({ used: limit, limit })
  const events = await vendor.call('GET', 'events?type=quota.reached')
  expect(events.text).toContain('"quota":"machines"')
})
