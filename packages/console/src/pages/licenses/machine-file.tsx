/** The window that issues the license file of one machine, from its request code or its machine id (docs/api.md#f9). */

import { DEFAULT_FILE_DAYS, type License, licenseFiles } from '@keyward/contract'
import { parseRequestCode } from '@keyward/license-file'
import { Button, Group, NumberInput, Stack, Textarea, TextInput } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { useRef, useState } from 'react'

import { call } from '../../api/client.ts'
import { useChange } from '../../api/hooks.ts'
import { InputError } from '../../api/input.ts'
import { save } from '../../api/save.ts'
import { FormWindow } from '../../parts/form.tsx'
import { QrCode } from '../../parts/qr-code.tsx'
import { Window } from '../../parts/window.tsx'

const CODE_START = 'KWR1.'
/** The number of characters that the largest QR code contains. Only files with many entitlements are longer. */
const MAX_QR_CHARACTERS = 2953

/** Returns the machine that the text names. Throws InputError for an incomplete code, and for one of another license. */
async function machineOf(
  typed: string,
  { key }: License,
): Promise<{ machineId: string; hostname?: string | undefined }> {
  const machineId = typed.trim()
  if (!machineId.startsWith(CODE_START)) return { machineId }
  const request = await parseRequestCode(typed)
  if (request === null) throw new InputError({ machineId: 'is no complete request code' })
  if (request.licenseKey !== key) throw new InputError({ machineId: 'names another license' })
  return request
}

export function MachineFile({ license, onClose }: { license: License; onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const [hostname, setHostname] = useState('')
  const [days, setDays] = useState<number | string>('')
  const [file, setFile] = useState<string | null>(null)
  const isIssued = useRef(false)
  const issue = useChange(
    async () => {
      const machine = await machineOf(typed, license)
      const name = hostname === '' ? machine.hostname : hostname
      const body = {
        machineId: machine.machineId,
        ...(name !== undefined && { hostname: name }),
        ...(days !== '' && { days: Number(days) }),
      }
      const issued = await call(licenseFiles.issueMachineFile, { params: { id: license.id }, body })
      isIssued.current = true
      setFile(issued)
    },
    { done: 'Issued the file.' },
  )
  if (file !== null) return <IssuedFile name={`license-${license.key}.lic`} file={file} onClose={onClose} />
  // The window of the form closes after the request. The window with the file replaces it.
  const close = () => {
    if (!isIssued.current) onClose()
  }
  return (
    <FormWindow
      title="File for one machine"
      action="Issue the file"
      onClose={close}
      onSubmit={() => issue.mutateAsync(undefined)}
    >
      {(errors) => (
        <>
          <Textarea
            label="Request code or machine id"
            description="The app on the machine without a network shows its code, which begins with KWR1."
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            error={errors['machineId']}
            rows={3}
            spellCheck={false}
            classNames={{ input: 'mono' }}
            required
          />
          <TextInput
            label="Name"
            description="A name by which you recognize the machine. Empty: the name in the code."
            value={hostname}
            onChange={(event) => setHostname(event.currentTarget.value)}
            error={errors['hostname']}
          />
          <NumberInput
            label="Days"
            description={`Empty: ${license.policy.fileDays ?? DEFAULT_FILE_DAYS}, the lifetime of files of this license.`}
            value={days}
            onChange={setDays}
            min={1}
            max={366}
            allowDecimal={false}
            error={errors['days']}
          />
          <p className="sub">Only this machine can use the file. It holds a slot until the file ends.</p>
        </>
      )}
    </FormWindow>
  )
}

/** Shows the file, which can be issued again but not read again. */
function IssuedFile({ name, file, onClose }: { name: string; file: string; onClose: () => void }) {
  const hasCode = file.length <= MAX_QR_CHARACTERS
  return (
    <Window onClose={onClose} title="File for one machine" size="lg" centered>
      <Stack>
        <p>
          Bring the file to the machine, and import it in the app.
          {hasCode && ' An app with a camera can read it from this QR code instead.'}
        </p>
        {hasCode && <QrCode text={file} label="The file as a QR code" />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button leftSection={<IconDownload size={16} />} onClick={() => save(name, file)}>
            Download the file
          </Button>
        </Group>
      </Stack>
    </Window>
  )
}
