import { callScenarios } from './scenarios/calls.ts'
import { fileScenarios } from './scenarios/files.ts'
import { machineKeyScenarios } from './scenarios/machine-keys.ts'
import { machineScenarios } from './scenarios/machines.ts'
import { proxyScenarios } from './scenarios/proxies.ts'
import { requestScenarios } from './scenarios/requests.ts'
import type { Scenario } from './scenarios/scenario.ts'
import { signedScenarios } from './scenarios/signed.ts'
import { storageScenarios } from './scenarios/storage.ts'
import { timedScenarios } from './scenarios/timed.ts'

/** The title of the cases of time budgets. */
export const TIMED = 'Slow networks'

export const scenarioGroups: readonly { title: string; scenarios: readonly Scenario[] }[] = [
  { title: 'Requests', scenarios: requestScenarios },
  { title: 'Entitlements and files on demand', scenarios: callScenarios },
  { title: 'Machines of the license', scenarios: machineScenarios },
  { title: 'License files and clocks', scenarios: fileScenarios },
  { title: 'Signed responses', scenarios: signedScenarios },
  { title: 'Storage', scenarios: storageScenarios },
  { title: 'Machine keys', scenarios: machineKeyScenarios },
  { title: TIMED, scenarios: timedScenarios },
  { title: 'Proxies and cancellation', scenarios: proxyScenarios },
]
