import { type License, licenseFiles, licenses, organizations } from '@keyward/contract'
import { mails } from '@keyward/contract/management/mails'
import { Button, Menu } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { IconDownload } from '@tabler/icons-react'
import { useState } from 'react'
import { Link } from 'wouter'

import { call } from '../../api/client.ts'
import { useCall, useChange, useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { save } from '../../api/save.ts'
import { MoreMenu } from '../../parts/parts.tsx'
import { Dialog } from './dialog.tsx'
import type { Opened } from './dialogs.tsx'
import { Renew } from './renew.tsx'
const PHONE = '(max-width: 48em)'

/** The actions on a license: one primary and two other buttons, and a menu with the rest, the dangerous ones last. */
export function Actions({ license: one }: { license: License }) {
  const may = useMay()
  const { id, key, status, policy } = one
  const canWrite = may('licenses.write')
  const [opened, setOpened] = useState<Opened | null>(null)
  const isPhone = useMediaQuery(PHONE, false, { getInitialValueInEffect: false })
  const input = { params: { id } }
  const reinstate = useCall(licenses.reinstateLicense, {
    done: 'Reinstated the license.',
    undo: () => call(licenses.suspendLicense, input),
  })
  const download = useChange(
    async () => save(`license-${key}.lic`, await call(licenseFiles.downloadLicenseFile, input)),
    { done: 'Downloaded the offline file.' },
  )
  const { data: organization } = useRead(organizations.readOwnOrganization, {})
  const sendKey = useCall(mails.sendMail, { done: ({ recipient }) => `Sending the key to ${recipient}.` })
  const isChangeable = canWrite && status !== 'revoked'
  const hasFile = status === 'active' || status === 'grace'
  return (
    <>
      {isChangeable && policy.type !== 'PERPETUAL' && status !== 'suspended' && <Renew license={one} />}
      {canWrite && status === 'suspended' && (
        <Button variant="default" onClick={() => reinstate.mutate(input)} loading={reinstate.isPending}>
          Reinstate
        </Button>
      )}
      {hasFile && !isPhone && (
        <Button
          variant="default"
          leftSection={<IconDownload size={16} />}
          onClick={() => download.mutate(undefined)}
          loading={download.isPending}
        >
          Offline file
        </Button>
      )}
      <Button component={Link} href={`/why?license=${id}`}>
        Check a machine
      </Button>
      <MoreMenu>
        {isChangeable && <Menu.Item onClick={() => setOpened('terms')}>Change the terms</Menu.Item>}
        {isChangeable && <Menu.Item onClick={() => setOpened('replaceKey')}>Replace the key</Menu.Item>}
        {canWrite && hasFile && <Menu.Item onClick={() => setOpened('machineFile')}>File for a machine</Menu.Item>}
        {may('customers.write') && organization?.mailEnabled === true && status !== 'revoked' && (
          <Menu.Item onClick={() => sendKey.mutate({ body: { template: 'key', licenseId: id } })}>
            Send the key by mail
          </Menu.Item>
        )}
        {hasFile && isPhone && <Menu.Item onClick={() => download.mutate(undefined)}>Offline file</Menu.Item>}
        {may('audit.read') && (
          <Menu.Item component={Link} href={`/audit?resourceId=${id}`}>
            History
          </Menu.Item>
        )}
        {canWrite && <Menu.Divider />}
        {isChangeable && status !== 'suspended' && <Menu.Item onClick={() => setOpened('suspend')}>Suspend</Menu.Item>}
        {isChangeable && (
          <Menu.Item color="red" onClick={() => setOpened('revoke')}>
            Revoke
          </Menu.Item>
        )}
        {canWrite && (
          <Menu.Item color="red" onClick={() => setOpened('delete')}>
            Delete
          </Menu.Item>
        )}
      </MoreMenu>
      {opened && <Dialog license={one} opened={opened} onClose={() => setOpened(null)} />}
    </>
  )
}
