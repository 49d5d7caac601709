/**
 * Measures the time from a committed change until all validators enforce it. The changes are access rules, revocations of
 * licenses and revocations of API keys, in turn. Each validator is polled with pauses of about a millisecond, so that
 * polling takes little processor time.
 */

import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertCustomer, insertLicense, insertProduct, insertRule } from '@keyward/testkit'
import type pg from 'pg'

import { rawRequest } from '../load/checks.ts'
import type { Server } from './servers.ts'

export const KINDS = ['rule', 'revocation', 'key revocation'] as const
type Kind = (typeof KINDS)[number]

/** A change, and the check whose response it changes. */
export interface Case {
  kind: Kind
  make: (pool: pg.Pool) => Promise<unknown>
  request: Buffer
  /** The text that a response contains once the change is enforced. */
  enforced: string
}

export interface Sample {
  kind: Kind
  /** The times until the last validator enforces the change: since the change was sent, and since its commit returned. */
  sinceSentMs: number
  sinceCommitMs: number
}

/** Inserts a license and an API key per change into an organization, so that no change hides another. */
export async function prepareCases(pool: pg.Pool, organizationId: string, count: number): Promise<Case[]> {
  const cases: Case[] = []
  for (let i = 0; i < count; i++) cases.push(await prepareCase(pool, organizationId, KINDS[i % KINDS.length]!))
  return cases
}

export async function prepareCase(pool: pg.Pool, organizationId: string, kind: Kind): Promise<Case> {
  const license = await insertLicense(pool, {
    organizationId,
    productId: await insertProduct(pool, { organizationId }),
    customerId: await insertCustomer(pool, { organizationId }),
  })
  const { id: credentialId, secret } = await insertApiKey(pool, { organizationId })
  const check = { apiKey: secret, licenseKey: license.key, machineId: 'machine', forwardedFor: null }
  const request = rawRequest({ kind: 'known', ...check }, 'v2', 'localhost')
  return { kind, request, ...changeOf(kind, { organizationId, licenseId: license.id, credentialId }) }
}

function changeOf(
  kind: Kind,
  ids: { organizationId: string; licenseId: string; credentialId: string },
): Pick<Case, 'make' | 'enforced'> {
  const { organizationId, licenseId, credentialId } = ids
  switch (kind) {
    case 'rule':
      return {
        enforced: '"BLACKLISTED"',
        make: (pool) => insertRule(pool, { organizationId, licenseId, type: 'HWID', value: 'machine' }),
      }
    case 'revocation':
      return {
        enforced: '"REVOKED"',
        make: (pool) => pool.query(`update licenses set status = 'revoked' where id = $1`, [licenseId]),
      }
    case 'key revocation':
      return {
        enforced: '"UNAUTHORIZED"',
        make: (pool) => pool.query(`update credentials set revoked_at = now() where id = $1`, [credentialId]),
      }
    default:
      return kind satisfies never
  }
}

/** Makes the changes one after the other, with pauses of `gapMs`. Throws if a validator enforces a change before it is made. */
export async function measureChanges(
  pool: pg.Pool,
  cases: readonly Case[],
  validators: readonly Server[],
  gapMs: number,
): Promise<Sample[]> {
  const sockets = validators.map(({ port }) => connect(port, '127.0.0.1').setNoDelay(true))
  const samples: Sample[] = []
  for (const [i, { kind, make, request, enforced }] of cases.entries()) {
    for (const socket of sockets)
      if (!(await send(socket, request)).includes('"VALID"')) throw new Error(`change ${i} was enforced too early`)
    const watching = sockets.map(async (socket) => {
      while (!(await send(socket, request)).includes(enforced)) await sleep(1)
      return performance.now()
    })
    const sentAtMs = performance.now()
    await make(pool)
    const committedAtMs = performance.now()
    const enforcedAtMs = Math.max(...(await Promise.all(watching)))
    const sinceCommitMs = Math.max(0, enforcedAtMs - committedAtMs)
    samples.push({ kind, sinceSentMs: enforcedAtMs - sentAtMs, sinceCommitMs })
    await sleep(gapMs)
  }
  for (const socket of sockets) socket.destroy()
  return samples
}

/** Sends one request and returns the response, which is small enough to arrive in one piece. */
function send(socket: Socket, request: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('data', (data) => {
      socket.off('error', reject)
      resolve(data.toString('latin1'))
    })
    socket.write(request)
  })
}
