/** Runs the TypeScript client as a program for the contract suite. */

import { createInterface } from 'node:readline'

import { judgeLicenseFile, spkiToPublicKey, verifyAnswer } from '@keyward/license-file'

import { createLicenseClient, type LicenseClient } from '../src/index.ts'
import { fileStorage, machineKey } from '../src/node.ts'
import type { Command, JudgeCommand, OpenCommand, PublicKey, VerifyCommand } from './protocol.ts'

let client: LicenseClient | null = null

function open({ clockAheadMs, storage, ...options }: OpenCommand): object {
  try {
    client = createLicenseClient({
      ...options,
      storage: fileStorage(storage),
      now: () => Date.now() + clockAheadMs,
    })
    return {}
  } catch (error) {
    return { error: String(error) }
  }
}

const readKey = ({ keyId, publicKey }: PublicKey) => ({
  keyId,
  publicKey: spkiToPublicKey(publicKey) ?? new Uint8Array(),
})

function judge({ file, publicKeys, ...facts }: JudgeCommand): object {
  const judged = judgeLicenseFile(file, { ...facts, keys: publicKeys.map(readKey) })
  return { outcome: judged.ok ? 'GOOD' : judged.reason }
}

async function verify({ request, response, publicKeys, ...answer }: VerifyCommand): Promise<object> {
  const [key] = publicKeys.map(readKey)
  if (key === undefined) throw new Error('The command has no public key.')
  const bodies = { request: Buffer.from(request), response: Buffer.from(response) }
  const verified = await verifyAnswer({ ...answer, ...bodies, key })
  return { outcome: verified.ok ? 'GOOD' : verified.reason }
}

async function run(command: Command): Promise<object> {
  if (command.command === 'open') return open(command)
  if (command.command === 'judge') return judge(command)
  if (command.command === 'verify') return verify(command)
  if (command.command === 'machineKey')
    return machineKey(command.path).catch((error: unknown) => ({ error: String(error) }))
  if (client === null) return { error: 'No client is open.' }
  if (command.command === 'importFile') return client.importFile(command.file)
  if (command.command === 'release') return client.release(command.ref)
  if (command.command === 'requestCode') return { code: await client.requestCode() }
  if (command.command === 'validateAndCancel') return client.validate({ signal: AbortSignal.timeout(command.afterMs) })
  const result = await client[command.command]()
  // Waits for the fetch of a file in the background.
  await client.settled()
  return result
}

for await (const line of createInterface({ input: process.stdin })) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the suite writes these lines
  const command = JSON.parse(line) as Command
  console.log(JSON.stringify(await run(command)))
}
