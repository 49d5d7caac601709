import { execFileSync, spawnSync } from 'node:child_process'

import { expect, test } from 'vitest'

import { createIndex } from '../../src/index.ts'

const GIB = 2 ** 30
const MIB = 2 ** 20
const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0

test('a large index reserves address space and uses memory only for written pages', () => {
  const before = process.memoryUsage().rss
  const writer = createIndex({ reserve: 'large' })
  expect(writer.stats().reservedBytes).toBe(8896 * MIB)
  expect(process.memoryUsage().rss - before).toBeLessThan(GIB / 4)
})

test.skipIf(!hasPrlimit)('creates a smaller index when the address space is limited (needs prlimit)', () => {
  const index = JSON.stringify(new URL('../../src/index.ts', import.meta.url).href)
  const program = `
    import { execFileSync } from 'node:child_process'
    import { readFileSync } from 'node:fs'
    import { createIndex } from ${index}
    const kibibytes = Number(/VmSize:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1])
    execFileSync('prlimit', ['--pid', String(process.pid), '--as=' + (kibibytes * 1024 + 6 * ${GIB})])
    const writer = createIndex({ reserve: 'large' })
    const id = new Uint8Array(16).fill(1)
    const rejected = writer.apply([{ entity: 'organization', id, row: { id } }])
    console.log(writer.stats().reservedBytes, rejected.length, writer.stats().rows.organization)`
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  const [reserved, rejected, organizations] = printed.split(' ').map(Number)
  expect(reserved).toBeGreaterThanOrEqual(GIB)
  expect(reserved).toBeLessThan(8 * GIB)
  expect([rejected, organizations]).toEqual([0, 1])
})
