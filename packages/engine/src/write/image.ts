/**
 * The image of an index: a copy of the control block and of the used part of each memory region, byte for byte. Only a
 * program with the same memory layout can restore it.
 */

import type { IndexStore } from '../memory/index-store.ts'
import { LAYOUT } from '../memory/layout.ts'
import { describeMemory, REGION_NAMES, startOfRegion } from '../memory/shared-memory.ts'

/** A part of the index's memory: the first `length` bytes of a buffer. */
export interface ImagePart {
  readonly buffer: SharedArrayBuffer
  readonly length: number
}

/** Returns a text that identifies the memory layout. A program can restore only images with the same text. */
export function describeImage(): string {
  return `${describeMemory()} ${JSON.stringify(LAYOUT)}`
}

/** Returns the control block and the used part of every region. */
export function partsOf(store: IndexStore): ImagePart[] {
  const { control, regions } = store.memory.shared
  const used = REGION_NAMES.map((name) => {
    const buffer = regions[name]
    return { buffer, length: startOfRegion(buffer, store.usedBytes(name)).length }
  })
  return [{ buffer: control, length: control.byteLength }, ...used]
}

/** Calls `fill` to write the memory of an empty index. Clears the memory again when `fill` returns false or throws. */
export function restoreParts(
  store: IndexStore,
  sizes: readonly number[],
  fill: (parts: readonly Uint8Array[]) => boolean,
): boolean {
  const { control, regions } = store.memory.shared
  const buffers = [control, ...REGION_NAMES.map((name) => regions[name])]
  const fits = sizes.length === buffers.length && buffers.every(({ byteLength }, i) => sizes[i]! <= byteLength)
  if (!fits || sizes[0] !== control.byteLength) return false
  const parts = buffers.map((buffer, i) => new Uint8Array(buffer, 0, sizes[i]))
  let isValid = false
  try {
    isValid = fill(parts)
  } finally {
    if (!isValid) {
      for (const part of parts) part.fill(0)
      store.initialize()
    }
  }
  return isValid
}
