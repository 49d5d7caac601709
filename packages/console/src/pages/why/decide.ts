/** Evaluates a hypothetical check, and reads what explains its decision. */

import { licenses, machines } from '@keyward/contract'
import { dryRuns } from '@keyward/contract/dry-run'

import { call } from '../../api/client.ts'
import type { Decision } from './steps.ts'

const MOST_HOLDERS = 50

export interface Check {
  licenseKey: string
  machineId: string
  ip: string
  country: string
}

/** Evaluates a check, and reads the license with its key and the machines that hold its slots. */
export async function decideCheck(check: Check): Promise<Decision> {
  const { licenseKey, machineId } = check
  const body = Object.fromEntries(Object.entries(check).filter(([, value]) => value !== ''))
  const evaluated = await call(dryRuns.evaluateAccessRules, { body })
  const isUnknown = evaluated.code === 'NOT_FOUND'
  const query = { key: licenseKey, limit: 1 }
  const license = isUnknown ? undefined : (await call(licenses.listLicenses, { query })).data[0]
  const rest = { evaluation: evaluated, hasMachineId: machineId !== '' }
  if (license === undefined) return { ...rest, license: null, holders: [], holdsSlot: false }
  const [holders, found] = await Promise.all([
    call(machines.listMachines, { params: { id: license.id }, query: { limit: MOST_HOLDERS } }),
    machineId === '' ? null : call(machines.findMachines, { query: { machineId, limit: 100 } }),
  ])
  const holdsSlot = found?.data.some((one) => one.licenseId === license.id) === true
  return { ...rest, license, holders: holders.data, holdsSlot }
}
