/** Shrinks a failing plan as long as the plan fails in the same way, so that the list of events is short enough to read. */

import { random } from '@keyward/testkit'

import { type Plan, randomTransaction, type Step } from './plan.ts'
import { type RunResult, runPlan } from './run.ts'

export interface Failure {
  readonly plan: Plan
  readonly result: RunResult
}

/** The maximum number of plans that are tried. */
const MAX_RUNS = 4_000

/** The maximum number of steps of the random plans that are tried first, and the number of these plans for each number of steps. */
const SHORT_STEPS = 2
const SHORT_PLANS = 1_000

export async function shrink(failure: Failure, run: (plan: Plan) => Promise<RunResult> = runPlan): Promise<Failure> {
  const problem = failure.result.finding?.problem
  let best = failure
  let runs = 0
  const attempt = async (plan: Plan): Promise<boolean> => {
    if (runs++ >= MAX_RUNS) return false
    const result = await run(plan)
    if (result.finding?.problem !== problem) return false
    best = { plan, result }
    return true
  }
  await tryShortPlans(failure.plan, attempt)
  let before = Infinity
  while (sizeOf(best.plan) < before) {
    before = sizeOf(best.plan)
    await removeSteps(() => best.plan, attempt)
    await simplifySteps(() => best.plan, attempt)
    for (const check of best.plan.checks)
      await attempt({ ...best.plan, checks: best.plan.checks.filter((one) => one !== check) })
  }
  return best
}

/** Removes consecutive steps. Tries half of the steps first, then fewer, and finally single steps. */
async function removeSteps(current: () => Plan, attempt: (plan: Plan) => Promise<boolean>): Promise<void> {
  for (let length = Math.ceil(current().steps.length / 2); length >= 1; length = Math.floor(length / 2)) {
    for (let from = 0; from < current().steps.length;) {
      const plan = current()
      const isShorter = await attempt({ ...plan, steps: plan.steps.toSpliced(from, length) })
      if (!isShorter) from += length
    }
  }
}

async function simplifySteps(current: () => Plan, attempt: (plan: Plan) => Promise<boolean>): Promise<void> {
  for (let i = 0; i < current().steps.length; i++) {
    for (const step of simplerThan(current().steps[i]!)) {
      const plan = current()
      if (await attempt({ ...plan, steps: plan.steps.with(i, step) })) break
    }
  }
}

/**
 * Tries random plans with few steps, the shortest first. Most defects show in a plan of one or two transactions. Removing steps from a long
 * plan may not lead to it, because a transaction chooses other rows without the ones before it.
 */
async function tryShortPlans(plan: Plan, attempt: (plan: Plan) => Promise<boolean>): Promise<void> {
  const from = random(plan.seed)
  for (let length = 1; length <= SHORT_STEPS && length < plan.steps.length; length++) {
    for (let tries = 0; tries < SHORT_PLANS; tries++) {
      const steps = Array.from({ length }, () => randomTransaction(from)).toSorted((a, b) => a.atMs - b.atMs)
      if (await attempt({ ...plan, steps })) return
    }
  }
}

function simplerThan(step: Step): Step[] {
  const simpler: Step[] = []
  if (step.kind === 'transaction' && step.operations.length > 1)
    for (const [i] of step.operations.entries()) simpler.push({ ...step, operations: step.operations.toSpliced(i, 1) })
  if (step.lastsMs > 0) simpler.push({ ...step, lastsMs: 0 })
  if (step.kind === 'fault' && step.lost > 0) simpler.push({ ...step, lost: step.lost - 1 })
  return simpler
}

function sizeOf({ steps, checks }: Plan): number {
  const sizes = steps.map(
    (step) => 2 + (step.kind === 'transaction' ? step.operations.length : 0) + Number(step.lastsMs > 0),
  )
  return checks.length + sizes.reduce((sum, size) => sum + size, 0)
}

/** Returns the events of a failed run as text. */
export function storyOf({ plan, result }: Failure): string {
  return [
    `seed ${plan.seed}, ${plan.steps.length} steps, a page of a load takes up to ${plan.pageMs} ms`,
    ...result.story,
  ].join('\n')
}
