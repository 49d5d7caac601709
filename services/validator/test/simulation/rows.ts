/** Converts simulated rows to the form in which the change feed delivers them. */

import type { FeedChange, RowId } from '@keyward/database'

import type { Entry } from './postgres.ts'
import { keyNumberOf, machineName, type State, TABLES, type TableName, usedOf } from './world.ts'

const utf8 = new TextEncoder()

export const bytesOf = (text: string): Uint8Array => utf8.encode(text)

/** Returns the id of a row. Ids of different tables differ, and a greater number yields a greater id within a table. */
export function idOf(table: TableName, number: number): Uint8Array {
  const id = new Uint8Array(16)
  id[0] = TABLES.indexOf(table) + 1
  new DataView(id.buffer).setUint32(12, number)
  return id
}

export function keyOf(license: number): Uint8Array {
  return bytesOf(`key-${keyNumberOf(license)}`)
}

export function secretHashOf(credential: number): Uint8Array {
  return new Uint8Array(32).fill(credential)
}

/** Returns the change that delivers a row of a state. With `isLoaded`, the slot count of machines is omitted, as in a load. */
export function changeOf(
  state: State,
  { table, row: key }: Pick<Entry, 'table' | 'row'>,
  isLoaded: boolean,
): FeedChange {
  if (table === 'machine') return machineChange(state, String(key), isLoaded)
  const number = Number(key)
  const id = idOf(table, number)
  switch (table) {
    case 'organization':
      return { entity: table, id, row: state.organization.has(number) ? { id } : null }
    case 'product': {
      const row = state.product.get(number)
      if (row === undefined) return { entity: table, id, row: null }
      return {
        entity: table,
        id,
        row: { id, organizationId: idOf('organization', row.organization), entitlements: null },
      }
    }
    case 'customer': {
      const row = state.customer.get(number)
      return { entity: table, id, row: row ? { id, organizationId: idOf('organization', row.organization) } : null }
    }
    case 'credential': {
      const row = state.credential.get(number)
      // The feed contains no revoked credentials.
      if (row === undefined || row.revoked) return { entity: table, id, row: null }
      const organizationId = idOf('organization', row.organization)
      const secretHash = secretHashOf(number)
      const always = { productId: null, expiresAtMs: Infinity }
      return { entity: table, id, row: { id, organizationId, secretHash, ...always } }
    }
    case 'license':
      return { entity: table, id, row: licenseRow(state, number, id) }
    case 'rule':
      return { entity: table, id, row: ruleRow(state, number, id) }
    default:
      return table satisfies never
  }
}

function machineChange(state: State, name: string, isLoaded: boolean): FeedChange {
  const [license = '', machine = ''] = name.split('/')
  const used = isLoaded ? null : usedOf(state, Number(license))
  const licenseId = idOf('license', Number(license))
  return { entity: 'machine', licenseId, machineId: bytesOf(machine), held: state.machine.has(name), used }
}

function licenseRow(state: State, number: number, id: Uint8Array): Extract<FeedChange, { entity: 'license' }>['row'] {
  const row = state.license.get(number)
  if (row === undefined) return null
  return {
    id,
    organizationId: idOf('organization', row.organization),
    productId: idOf('product', row.product),
    customerId: idOf('customer', row.customer),
    key: keyOf(number),
    status: row.status,
    expiresAtMs: Infinity,
    maxMachines: row.max,
    leaseSeconds: null,
    graceDays: null,
    used: usedOf(state, number),
    entitlements: null,
  }
}

function ruleRow(state: State, number: number, id: Uint8Array): Extract<FeedChange, { entity: 'rule' }>['row'] {
  const row = state.rule.get(number)
  if (row === undefined) return null
  const { kind, type, scope, scopeId, allowSuspendedOrExpired } = row
  return {
    id,
    organizationId: idOf('organization', row.organization),
    kind,
    mode: 'ENFORCE',
    type,
    value: bytesOf(row.value),
    scope,
    scopeId: scopeId === null ? null : idOf(scope === 'LICENSE' ? 'license' : 'product', scopeId),
    customerId: type === 'CUSTOMER' ? idOf('customer', Number(row.value)) : null,
    expiresAtMs: Infinity,
    allowSuspendedOrExpired,
  }
}

/** Returns the rows of a state in the order of a load. Rows follow the rows to which they refer, and machines come last. */
export function loadOf(state: State): FeedChange[] {
  return LOAD_ORDER.flatMap((table) => [...state[table].keys()].map((row) => changeOf(state, { table, row }, true)))
}

const LOAD_ORDER = ['organization', 'product', 'customer', 'credential', 'license', 'rule', 'machine'] as const

/** Returns the number of the row with this id. */
export function numberOf(id: Uint8Array): number {
  return new DataView(id.buffer, id.byteOffset).getUint32(12)
}

/** Returns the entry of the change log for a row. */
export function entryOf({ entity, id, machineId }: RowId): Pick<Entry, 'table' | 'row'> {
  if (entity === 'signingKey') throw new Error('The simulation has no signing keys.')
  if (entity !== 'machine') return { table: entity, row: numberOf(id) }
  return { table: 'machine', row: machineName(numberOf(id), new TextDecoder().decode(machineId ?? undefined)) }
}
