/**
 * Disables recording in a validator. The `recording` scenario preloads this module with `node --import`, because the
 * product has no setting for this.
 */

const ring = new URL('../../../services/validator/src/usage/ring.ts', import.meta.url)
const loaded: unknown = await import(ring.href)
const writer: unknown = typeof loaded === 'object' && loaded !== null ? Reflect.get(loaded, 'RingWriter') : undefined
const prototype: unknown = typeof writer === 'function' ? Reflect.get(writer, 'prototype') : undefined
if (typeof prototype !== 'object' || prototype === null || !Reflect.has(prototype, 'record'))
  throw new Error(
    'RingWriter.record no longer exists; adapt this file to the method by which the validator records checks',
  )
Reflect.set(prototype, 'record', () => undefined)
