/**
 * Disables recording in a validator. The `recording` scenario preloads it with `node --import`; the product has no such
 * setting.
 */

const ring = new URL('../../../services/validator/src/usage/ring.ts', import.meta.url)
const loaded: unknown = await import(ring.href)
const writer: unknown = typeof loaded === 'object' && loaded !== null ? Reflect.get(loaded, 'RingWriter') : undefined
const prototype: unknown = typeof writer === 'function' ? Reflect.get(writer, 'prototype') : undefined
if (typeof prototype !== 'object' || prototype === null || !Reflect.has(prototype, 'record'))
  throw new Error('RingWriter.record does not exist any more: adapt this file to the way the validator records')
Reflect.set(prototype, 'record', () => undefined)
