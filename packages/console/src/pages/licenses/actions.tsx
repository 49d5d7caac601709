import { type License, licenseFiles, licenses } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { ActionIcon, Button, Menu } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { IconDots, IconDownload } from '@tabler/icons-react'
import { useState } from 'react'
import { Link } from 'wouter'

import { call } from '../../api/client.ts'
import { useCall, useChange } from '../../api/hooks.ts'
import { save } from '../../api/save.ts'
import { text } from '../../text.ts'
import { Dialog } from './dialog.tsx'
import type { Opened } from './dialogs.tsx'
import { Renew } from './renew.tsx'

const t = text.license
const PHONE = '(max-width: 48em)'

/** The actions on a license: one primary and two other buttons, and a menu with the rest, the dangerous ones last. */
export function Actions({ license: one, me }: { license: License; me: Me }) {
  const { id, key, status, policy } = one
  const canWrite = me.permissions.includes('licenses.write')
  const [opened, setOpened] = useState<Opened | null>(null)
  const isPhone = useMediaQuery(PHONE, false, { getInitialValueInEffect: false })
  const input = { params: { id } }
  const suspend = useCall(licenses.suspendLicense, {
    done: t.suspended,
    undo: () => call(licenses.reinstateLicense, input),
  })
  const reinstate = useCall(licenses.reinstateLicense, {
    done: t.reinstated,
    undo: () => call(licenses.suspendLicense, input),
  })
  const download = useChange(
    async () => save(`license-${key}.lic`, await call(licenseFiles.downloadLicenseFile, input)),
    { done: t.downloaded },
  )
  const isChangeable = canWrite && status !== 'revoked'
  const hasFile = status === 'active' || status === 'grace'
  return (
    <>
      {isChangeable && policy.type !== 'PERPETUAL' && status !== 'suspended' && <Renew license={one} />}
      {canWrite && status === 'suspended' && (
        <Button variant="default" onClick={() => reinstate.mutate(input)} loading={reinstate.isPending}>
          {t.reinstate}
        </Button>
      )}
      {hasFile && !isPhone && (
        <Button
          variant="default"
          leftSection={<IconDownload size={16} />}
          onClick={() => download.mutate(undefined)}
          loading={download.isPending}
        >
          {t.download}
        </Button>
      )}
      <Button component={Link} href={`/why?license=${id}`}>
        {t.why}
      </Button>
      <Menu position="bottom-end" width={208}>
        <Menu.Target>
          <ActionIcon variant="default" size="var(--h-control)" aria-label={text.more}>
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {isChangeable && <Menu.Item onClick={() => setOpened('terms')}>{t.editTerms}</Menu.Item>}
          {isChangeable && <Menu.Item onClick={() => setOpened('replaceKey')}>{t.replaceKey}</Menu.Item>}
          {hasFile && isPhone && <Menu.Item onClick={() => download.mutate(undefined)}>{t.download}</Menu.Item>}
          {me.permissions.includes('audit.read') && (
            <Menu.Item component={Link} href={`/audit?resourceId=${id}`}>
              {text.audit.history}
            </Menu.Item>
          )}
          {canWrite && <Menu.Divider />}
          {isChangeable && status !== 'suspended' && (
            <Menu.Item onClick={() => suspend.mutate(input)}>{t.suspend}</Menu.Item>
          )}
          {isChangeable && (
            <Menu.Item color="red" onClick={() => setOpened('revoke')}>
              {t.revoke}
            </Menu.Item>
          )}
          {canWrite && (
            <Menu.Item color="red" onClick={() => setOpened('delete')}>
              {t.delete}
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      {opened && <Dialog license={one} opened={opened} onClose={() => setOpened(null)} />}
    </>
  )
}
