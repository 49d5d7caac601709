import { expect, test, vi } from 'vitest'

import {
  createIndex,
  describeImage,
  IMAGE_VERSION,
  type ImagePart,
  type IndexWriter,
  openIndex,
} from '../../src/index.ts'
import { Draft } from '../../src/write/draft.ts'
import { differences } from '../support/comparison.ts'
import { History } from '../support/history.ts'
import { machine, tenant } from '../support/rows.ts'

const copyOf = (parts: readonly ImagePart[]): Uint8Array[] =>
  parts.map(({ buffer, length }) => Uint8Array.from(new Uint8Array(buffer, 0, length)))

function restore(writer: IndexWriter, image: readonly Uint8Array[], isValid = true): boolean {
  return writer.restore(
    image.map(({ length }) => length),
    (parts) => {
      for (const [i, part] of parts.entries()) part.set(image[i]!)
      return isValid
    },
  )
}

test('an index restored from an image has the same content and applies changes like the original', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const world = new History(seed)
    const options = { reserve: 'tiny', hashKey: world.random.bytes(16) } as const
    const original = createIndex(options)
    for (let i = 0; i < 100; i++) original.apply(world.step())
    original.beginReload()
    expect(original.image()).toBeNull()
    original.receive(world.snapshot())
    original.endReload()

    const restored = createIndex(options)
    expect(restore(restored, copyOf(original.image()!))).toBe(true)
    const reader = openIndex(restored.shared)
    expect(differences(reader, world, 100), `seed ${seed}`).toEqual([])
    expect(restored.stats()).toEqual(original.stats())
    for (let i = 0; i < 100; i++) {
      const changes = world.step()
      expect(restored.apply(changes)).toEqual(original.apply(changes))
    }
    expect(differences(reader, world, 100), `seed ${seed}`).toEqual([])
    expect(copyOf(restored.image()!)).toEqual(copyOf(original.image()!))
    restored.beginReload()
    restored.receive(world.snapshot())
    expect(restored.endReload()).toEqual([])
    expect(differences(reader, world, 50), `seed ${seed}`).toEqual([])
  }
})

test('an image that is invalid or does not fit leaves the index empty', () => {
  const original = createIndex({ reserve: 'tiny' })
  original.apply(tenant())
  const image = copyOf(original.image()!)
  const restored = createIndex({ reserve: 'tiny' })
  expect(restore(restored, image, false)).toBe(false)
  expect(restore(restored, image.slice(1))).toBe(false)
  expect(restore(restored, [image[0]!, new Uint8Array(2 ** 24), ...image.slice(2)])).toBe(false)
  expect(restored.stats()).toEqual(createIndex({ reserve: 'tiny' }).stats())
  expect(restored.apply(tenant())).toEqual([])
  expect(restored.stats().rows).toEqual(original.stats().rows)
})

test('returns no image after an abandoned reload until the next reload has ended', () => {
  const writer = createIndex({ reserve: 'tiny' })
  writer.apply(tenant())
  writer.beginReload()
  writer.abandonReload()
  expect(writer.image()).toBeNull()
  writer.beginReload()
  writer.receive(tenant())
  writer.endReload()
  expect(writer.image()).not.toBeNull()
})

test('the description of an image contains the names of regions and fields', () => {
  expect(describeImage()).toContain('machinesOverflow')
  expect(describeImage()).toContain('keyHash')
})

test('the version of an image is odd while a section is prepared, and differs after each section, even a discarded one', () => {
  const writer = createIndex({ reserve: 'tiny' })
  const control = new Int32Array(writer.shared.control)
  const versions = [control[IMAGE_VERSION]!]
  writer.apply(tenant())
  versions.push(control[IMAGE_VERSION]!)
  const claim = vi.spyOn(Draft.prototype, 'claim').mockImplementation(() => {
    expect(control[IMAGE_VERSION]! % 2).toBe(1)
    throw new Error('injected')
  })
  expect(() => writer.apply([machine(1)])).toThrow('injected')
  expect(claim).toHaveBeenCalled()
  versions.push(control[IMAGE_VERSION]!)
  expect(new Set(versions).size).toBe(3)
  expect(versions.every((version) => version % 2 === 0)).toBe(true)
  claim.mockRestore()
})
