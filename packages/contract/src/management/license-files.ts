/** License files for vendors and apps (docs/api.md#f4). */

import { z } from 'zod'

import { exactText, MAX_MACHINE_ID_BYTES, optionalExactText, text } from '../text.ts'
import { checkedLicenseKey } from '../validation.ts'
import { DEFAULT_FILE_DAYS, MAX_FILE_DAYS } from './licenses.ts'
import { operations } from './operations.ts'

export const licenseFile = z.string().meta({
  description: 'The signed file: base64url payload, a dot, base64url Ed25519 signature.',
  example: 'eyJsaWNlbnNlS2V5IjoiLi4uIn0.c2lnbmF0dXJl',
})

/** The body of a request for a license file. Both fields have the same format as in a check (docs/api.md#f4). */
const requestLicenseFile = z
  .strictObject({
    licenseKey: checkedLicenseKey,
    fingerprint: optionalExactText(MAX_MACHINE_ID_BYTES).meta({
      description: 'The machine id; null and the empty string count as absent.',
      example: '4C4C4544-0051-3510',
    }),
  })
  .meta({ example: { licenseKey: 'K7QF-2MXW-9RTB-HD4C', fingerprint: 'A4-F1-00-12' } })

/** The body of a request for the file of a machine (docs/api.md#f8). */
export const newMachineFile = z
  .strictObject({
    machineId: exactText(MAX_MACHINE_ID_BYTES).meta({
      description: 'The machine id, exactly as the app sends it. Only this machine can use the file.',
      example: 'A4-F1-00-12',
    }),
    hostname: text(MAX_MACHINE_ID_BYTES)
      .nullable()
      .optional()
      .meta({ description: 'A name by which people recognize the machine.', example: 'plant-3' }),
    days: z.int().min(1).max(MAX_FILE_DAYS).optional().meta({
      description: 'The lifetime of the file in days, at most and by default `policy.fileDays`, or 30 if it is null.',
      example: DEFAULT_FILE_DAYS,
    }),
  })
  .meta({ example: { machineId: 'A4-F1-00-12', hostname: 'plant-3' } })

export const licenseFiles = operations({
  downloadLicenseFile: {
    route: 'GET /licenses/{id}/file',
    needs: 'licenses.read',
    returns: licenseFile,
    file: 'text/plain',
  },
  issueMachineFile: {
    route: 'POST /licenses/{id}/file',
    needs: 'licenses.write',
    body: newMachineFile,
    returns: licenseFile,
    file: 'text/plain',
  },
  requestLicenseFile: {
    route: 'POST /licenses/file',
    needs: 'apiKey',
    body: requestLicenseFile,
    returns: licenseFile,
    file: 'text/plain',
    readOnly: true,
  },
})
