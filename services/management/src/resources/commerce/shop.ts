/**
 * Defines what a receiver of a shop does: it verifies a signature, finds the events of a body, and translates an event into changes of an
 * order. A receiver calls no shop, because the events contain all that it needs.
 */

import { createHmac, timingSafeEqual } from 'node:crypto'

import type { OrderState } from '@keyward/contract/management/orders'
import { z } from 'zod'

/** A request of a shop: the bytes of its body, and its headers. */
export interface SignedRequest {
  bytes: Uint8Array
  header: (name: string) => string | undefined
}

export interface ReceivedEvent {
  /** The id of the event, which is the same in each repetition. */
  id: string
  type: string
  /** Whether the event is about real money, or null if the shop does not state it. */
  isLive: boolean | null
  /** The event as JSON text. */
  text: string
}

export interface Buyer {
  externalId?: string | undefined
  /** Absent if the shop sends the address in an event of its own. */
  email?: string | undefined
  name?: string | null | undefined
}

export interface Line {
  line: string
  /** The template in the metadata of the shop, `none` for a good without a license, or undefined. */
  template: string | undefined
  priceId: string | undefined
  quantity: number
  paidThrough?: Date | undefined
}

/** A change of an order. The event without lines concerns all lines of an order that another event has created. */
export interface OrderChange {
  /** The id of the order. */
  order: string
  /** Other ids by which the shop refers to the order. */
  references: readonly (string | null | undefined)[]
  /** The new state, or null if the event only states the references. */
  state: OrderState | null
  occurredAt: Date
  lines: readonly Line[] | null
  customer?: Buyer
}

/** A change of an order, the address of a customer, or null for an event that concerns neither. */
export type Translation = OrderChange | { customer: Required<Buyer> } | null

export interface Receiver {
  /** The name of the header with the signature. */
  signatureHeader: string
  isSigned(request: SignedRequest, secret: string, nowMs: number): boolean
  /** Throws a ZodError if the body is not of this shop. */
  eventsOf(body: unknown, request: SignedRequest): ReceivedEvent[]
  /** Throws a ZodError if the event lacks a field. */
  translate(event: unknown): Translation
}

/** The difference between the clocks of shop and service, in seconds, up to which a signature is accepted. */
const TOLERANCE_SECONDS = 300

export function isRecent(seconds: string | undefined, nowMs: number): boolean {
  return /^\d{1,12}$/.test(seconds ?? '') && Math.abs(nowMs / 1_000 - Number(seconds)) <= TOLERANCE_SECONDS
}

/** Returns whether one of the given signatures is the HMAC-SHA256 of the parts. The comparison takes the same time for every signature. */
export function isHmac(
  given: readonly (string | undefined)[],
  key: string | Uint8Array,
  parts: readonly (string | Uint8Array)[],
  encoding: 'hex' | 'base64',
): boolean {
  const hmac = createHmac('sha256', key)
  for (const part of parts) hmac.update(part)
  const expected = Buffer.from(hmac.digest(encoding))
  return given.some((one) => {
    const bytes = Buffer.from(one ?? '')
    return bytes.length === expected.length && timingSafeEqual(bytes, expected)
  })
}

/** Returns the values of a header such as `t=1,v1=a,v1=b` by name. */
export function fieldsOf(header: string | undefined, separator: string): Map<string, string[]> {
  const fields = new Map<string, string[]>()
  for (const part of (header ?? '').split(separator)) {
    const [name = '', value = ''] = part.trim().split('=', 2)
    const values = fields.get(name)
    if (values) values.push(value)
    else fields.set(name, [value])
  }
  return fields
}

/** An id, or the object that a shop includes in its place. */
export const reference = z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)])
/** The metadata of the vendor in the shop. Its member `keyward_template` is the id of a template. */
const metadata = z
  .object({ keyward_template: z.string().optional().catch(undefined) })
  .nullish()
  .catch(null)
  .transform((value) => value?.keyward_template)
export const template = metadata
export const quantity = z
  .int()
  .nullish()
  .transform((value) => value ?? 1)
export const milliseconds = z
  .number()
  .transform((value) => new Date(value))
  .pipe(z.date())
export const seconds = z
  .number()
  .transform((value) => value * 1_000)
  .pipe(milliseconds)
export const time = z.iso.datetime({ offset: true }).transform((value) => new Date(value))
/** An id that a shop sends as a number or as text. */
export const numericId = z.union([z.number(), z.string()]).transform(String)

/** A translation of the events of one type: the schema of an event, and a function. */
export function on<Schema extends z.ZodType>(schema: Schema, translate: (event: z.output<Schema>) => Translation) {
  return (event: unknown) => translate(schema.parse(event))
}
export type Translations = Readonly<Record<string, (event: unknown) => Translation>>

/** Returns the translation of an event, or null if the shop's receiver does not list its type. */
export function translateBy(translations: Translations, type: string, event: unknown): Translation {
  return Object.hasOwn(translations, type) ? translations[type]!(event) : null
}
