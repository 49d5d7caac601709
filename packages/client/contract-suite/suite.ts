import vectors from '@keyward/license-file/vectors/license-files.json' with { type: 'json' }
import answers from '@keyward/license-file/vectors/signed-answers.json' with { type: 'json' }

import { ClientProgram } from './protocol.ts'
import { responseCases, runResponseCase } from './responses.ts'
import { scenarioGroups, TIMED } from './scenarios.ts'
import { type Conditions, requireEqual, startWorld } from './world.ts'

export interface Case {
  name: string
  /** Runs the case with a running program. */
  run: (program: ClientProgram, conditions: Conditions) => Promise<void>
  /** Returns what the machine lacks for this case, or null. */
  missing?: (() => string | null) | undefined
}

/** The outcome of a case. `problem` is null when the case passed or was skipped. */
export interface CaseResult {
  name: string
  problem: string | null
  /** The reason why the machine cannot run the case, or null. */
  skipped: string | null
}

/** The cases that use the service of the suite. */
export const contractCases: readonly Case[] = [
  ...responseCases.map((each) => inWorld(`response: ${each.name}`, (world) => runResponseCase(world, each))),
  ...scenarioGroups.flatMap(({ title, scenarios }) =>
    scenarios.map(({ name, run, missing }) => ({ ...inWorld(`${title.toLowerCase()}: ${name}`, run), missing })),
  ),
]

const fileCases = vectors.cases.map((vector): Case => ({
  name: `vector: ${vector.name}`,
  async run(program) {
    const { outcome } = await program.send({
      command: 'judge',
      file: vector.file,
      licenseKey: vector.licenseKey,
      productId: vector.productId,
      machineId: vector.machineId,
      publicKeys: vectors.keys.filter(({ keyId }) => vector.keyIds.includes(keyId)),
      nowMs: Date.parse(vector.now),
      latestSeenMs: vector.latestSeen === null ? 0 : Date.parse(vector.latestSeen),
    })
    requireEqual('the outcome', outcome, vector.expected)
  },
}))

const answerCases = answers.cases.map(({ name, keyId, publicKey, latestSigned, expected, ...answer }): Case => ({
  name: `signed response: ${name}`,
  async run(program) {
    const { outcome } = await program.send({
      command: 'verify',
      ...answer,
      publicKeys: [{ keyId, publicKey }],
      latestSignedMs: latestSigned === null ? 0 : Date.parse(latestSigned),
    })
    requireEqual('the outcome', outcome, expected)
  },
}))

/** The cases of time budgets. */
export const timedCases: readonly Case[] = contractCases.filter(({ name }) =>
  name.startsWith(`${TIMED.toLowerCase()}: `),
)

/** The cases from the test vectors for license files and signed responses. */
export const vectorCases: readonly Case[] = [...fileCases, ...answerCases]

/** The conditions of a machine that other programs keep busy, as in CI. */
export const BUSY = { programs: 6, lateness: 3 }
/** The conditions for measuring time budgets. No other program may keep the machine busy. */
export const QUIET = { programs: 1, lateness: 1.1 }

/** Runs cases in parallel with several processes of the program. Returns the results in the order of the cases. */
export async function runCases(
  command: readonly string[],
  cases: readonly Case[],
  { programs, lateness }: { programs: number; lateness: number } = BUSY,
): Promise<CaseResult[]> {
  const results: CaseResult[] = []
  const queue = [...cases.entries()]
  const work = async () => {
    let program: ClientProgram | null = null
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [position, { name, run, missing = () => null }] = next
      const skipped = missing()
      if (skipped !== null) {
        results[position] = { name, problem: null, skipped }
        continue
      }
      program ??= new ClientProgram(command)
      try {
        await run(program, { command, lateness })
        results[position] = { name, problem: null, skipped }
      } catch (error) {
        results[position] = { name, problem: error instanceof Error ? error.message : String(error), skipped }
        // The process may hang or may have ended, so the next case uses a new process.
        program.stop()
        program = null
      }
    }
    program?.stop()
  }
  await Promise.all(Array.from({ length: programs }, work))
  return results
}

function inWorld(name: string, run: (world: Awaited<ReturnType<typeof startWorld>>) => Promise<void>): Case {
  return {
    name,
    async run(program, conditions) {
      const world = await startWorld(program, conditions)
      try {
        await run(world)
      } finally {
        await world.close()
      }
    },
  }
}
