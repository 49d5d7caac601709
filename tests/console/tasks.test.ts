/**
 * Performs the fifteen tasks of the console with the mouse, and again with the keyboard alone. Fails if a task needs more clicks than
 * tasks.efforts.md lists, or if its key presses exceed the listed number by more than 30 % plus 5. A typed character and a pasted text each
 * count as one key press. The choice of a file in the dialog of the operating system is not counted. With KEYWARD_RECORD=1, the test writes
 * the numbers to the table instead.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { hasBrowser, WITHOUT_BROWSER } from '@keyward/testkit/browser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { countInput, type Effort, keyboard, mouse } from './hands.ts'
import { created, openStage, type Stage } from './stage.ts'
import { TASKS } from './tasks.ts'

const PAGE = join(import.meta.dirname, 'tasks.efforts.md')
const records = process.env['KEYWARD_RECORD'] === '1'
/**
 * The timeout of a step. It is longer than in tests of one screen, because one step may load a screen and send the requests of
 * a form.
 */
const TIMEOUT_MS = 60_000
const DAY_MS = 86_400_000

/** The numbers of clicks and key presses, by task and run. */
const efforts = new Map<string, Effort>()

/** Reads the efforts from the table. */
function recorded(): Map<string, Effort[]> {
  const rows = readFileSync(PAGE, 'utf8').matchAll(/^\| \d+\. (.+?) \| (\d+) \| (\d+) \| (\d+) \|$/gm)
  return new Map(
    [...rows].map(([, name = '', clicks, keys, alone]) => [
      name,
      [
        { clicks: Number(clicks), keys: Number(keys) },
        { clicks: 0, keys: Number(alone) },
      ],
    ]),
  )
}

/** Writes the efforts of this run to the table. Keeps the recorded efforts of tasks that did not run. */
function record(): void {
  const earlier = recorded()
  const rows = TASKS.map(({ name }, i) => {
    const [byMouse, alone] = ['MOUS', 'KEYB'].map(
      (run, way) => efforts.get(`${name} ${run}`) ?? earlier.get(name)?.[way],
    )
    return `| ${i + 1}. ${name} | ${byMouse?.clicks} | ${byMouse?.keys} | ${alone?.keys} |\n`
  })
  const text = readFileSync(PAGE, 'utf8').replaceAll(/^\| \d+\. .*\n/gm, '')
  writeFileSync(
    PAGE,
    text.replace(/^\| ?--.*\n/m, (line) => line + rows.join('')),
  )
}

describe.skipIf(!hasBrowser)(`the tasks of the console (${WITHOUT_BROWSER})`, { timeout: 120_000 }, () => {
  let stage: Stage
  let counted: Effort

  beforeAll(async () => {
    stage = await openStage()
    stage.context.setDefaultTimeout(TIMEOUT_MS)
    counted = await countInput(stage.context)
    const id = await stage.addLicense('EXPI-0000-0000-0001')
    const policy = { type: 'SUBSCRIPTION', expiresAt: new Date(Date.now() + 9 * DAY_MS).toISOString() }
    await stage.api(`/licenses/${id}`, { policy }, created, 'PATCH')
    await stage.check('EXPI-0000-0000-0001', 'm')
  })

  afterAll(async () => {
    await stage.close()
    if (records) record()
  })

  for (const [way, run] of [
    ['the mouse', 'MOUS'],
    ['the keyboard alone', 'KEYB'],
  ] as const)
    test.each(TASKS)(`$name, with ${way}`, async ({ name, prepare, perform }) => {
      await prepare?.(stage, run)
      await stage.open('')
      Object.assign(counted, { clicks: 0, keys: 0 })
      await perform(stage, run === 'MOUS' ? mouse(stage.page) : keyboard(stage.page), run)
      const effort = { ...counted }
      efforts.set(`${name} ${run}`, effort)
      expect(run === 'KEYB' ? effort.clicks : 0).toBe(0)
      if (records) return
      const limit = recorded().get(name)?.[run === 'MOUS' ? 0 : 1]
      expect(limit, `${name} is missing in tasks.efforts.md`).toBeDefined()
      expect(effort.clicks).toBeLessThanOrEqual(limit?.clicks ?? 0)
      // The number of presses of Tab varies slightly, because links and notes appear and disappear on a page.
      expect(effort.keys).toBeLessThanOrEqual((limit?.keys ?? 0) * 1.3 + 5)
    })
})
