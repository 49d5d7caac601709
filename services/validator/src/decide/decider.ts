/**
 * Decides dry runs for management (docs/api.md#r5). A dry run takes no slot and records nothing. The main thread decides it
 * with the index and the engine that the workers use. The address and the country do not leave this class (docs/api.md#d1).
 */

import { packCountry, parseAddress } from '@keyward/address'
import { DECIDED_NOT_FOUND, type DecideCheck, type DecideResponse } from '@keyward/contract/dry-run'
import { byteLength, MAX_LICENSE_KEY_BYTES, MAX_MACHINE_ID_BYTES } from '@keyward/contract/text'
import { bytesToUuid, uuidToBytes } from '@keyward/database/ids'
import {
  CLAIM_SLOT,
  CODES,
  createCheck,
  createVerdict,
  HOLDS_LEASE,
  type IndexReader,
  OF_LICENSE,
  OF_PRODUCT,
  RESTRICTION_TYPES,
  type Verdict,
} from '@keyward/engine'

import { createRequestBody, fillBody } from '../endpoints/request-body.ts'

type Restricted = NonNullable<DecideResponse['restricted']>

export class Decider {
  readonly #reader: IndexReader

  /** The reader must belong to the thread that writes the index, so that no write happens during a decision. */
  constructor(reader: IndexReader) {
    this.#reader = reader
  }

  /** Returns the verdict at `nowMs`, or null when the address or the machine id is invalid. */
  decide(organizationId: string, request: DecideCheck, nowMs: number): DecideResponse | null {
    const { country, ip } = request
    const check = { ...createCheck(), ...createRequestBody() }
    if (ip !== null && !parseAddress(ip, check)) return null
    if (country !== null) check.country = packCountry(country)
    if (byteLength(request.machineId ?? '') > MAX_MACHINE_ID_BYTES) return null
    fillBody(request, check)
    check.organization = this.#reader.findOrganization(uuidToBytes(organizationId))
    if (request.productId !== undefined) check.product = this.#reader.findProduct(uuidToBytes(request.productId))
    const isTooLong = check.licenseKeyLength > MAX_LICENSE_KEY_BYTES
    if (isTooLong || check.organization < 0 || check.product < 0) return DECIDED_NOT_FOUND
    const verdict = createVerdict()
    this.#reader.decide(check, nowMs, verdict)
    const code = CODES[verdict.code]
    if (verdict.busy || code === undefined) throw new Error('the engine returned no verdict')
    const rows = [...verdict.matched.subarray(0, verdict.matchedCount)]
    const ids = rows.map((row, i) => this.#ruleId(row, verdict.matchedGenerations[i]!))
    const isMonitored = rows.map((row) => this.#reader.isMonitored(row))
    return {
      code,
      needsSlot: verdict.slot === CLAIM_SLOT,
      holdsLease: verdict.slot === HOLDS_LEASE,
      decidedBy: ids[rows.indexOf(verdict.decidedBy)] ?? null,
      matched: ids.filter((_, i) => !isMonitored[i]),
      monitored: ids.filter((_, i) => isMonitored[i]),
      restricted: verdict.restrictedTypes === 0 ? null : this.#restrictedBy(verdict),
    }
  }

  #restrictedBy({ license, licenseGeneration, product, productGeneration, ...verdict }: Verdict): Restricted {
    const types = RESTRICTION_TYPES.filter((_, i) => (verdict.restrictedTypes & (1 << i)) !== 0)
    const id = new Uint8Array(16)
    if (verdict.restrictedScope === OF_LICENSE) {
      this.#reader.licenseId(license, licenseGeneration, id)
      return { scope: 'LICENSE', scopeId: bytesToUuid(id), types }
    }
    if (verdict.restrictedScope === OF_PRODUCT) {
      this.#reader.productId(product, productGeneration, id)
      return { scope: 'PRODUCT', scopeId: bytesToUuid(id), types }
    }
    return { scope: 'ORGANIZATION', scopeId: null, types }
  }

  #ruleId(row: number, generation: number): string {
    const id = new Uint8Array(16)
    if (!this.#reader.ruleId(row, generation, id)) throw new Error('the index does not contain the rule that matched')
    return bytesToUuid(id)
  }
}
