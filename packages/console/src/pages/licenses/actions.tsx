import { type License, licenseFiles, licenses } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { ActionIcon, Button, Menu } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { IconDots, IconDownload } from '@tabler/icons-react'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'

import { call } from '../../api/client.ts'
import { useCall, useChange } from '../../api/hooks.ts'
import { useName } from '../../api/names.ts'
import { save } from '../../api/save.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { KeyText } from '../../parts/parts.tsx'
import { text } from '../../text.ts'
import { Renew } from './renew.tsx'
import { EditTerms } from './summary.tsx'

const t = text.license
const TYPED_CHARACTERS = 4
const PHONE = '(max-width: 48em)'

type Opened = 'terms' | 'replaceKey' | 'revoke' | 'delete'

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
      {opened && <Dialogs license={one} opened={opened} onClose={() => setOpened(null)} />}
    </>
  )
}

/** The window of an action that needs fields or a confirmation. */
function Dialogs({ license: one, opened, onClose }: { license: License; opened: Opened; onClose: () => void }) {
  const { id, key } = one
  const [, navigate] = useLocation()
  const customer = useName(one.customerId)
  const input = { params: { id } }
  const remove = useCall(licenses.deleteLicense, { done: t.deleted, onDone: () => navigate('/licenses') })
  const replaceKey = useCall(licenses.replaceLicenseKey, { done: t.replaced })
  const revoke = useCall(licenses.revokeLicense, { done: t.revoked })
  const confirm = {
    object: (
      <>
        <KeyText value={key} />
        <span className="sub">{customer}</span>
      </>
    ),
    onClose,
  }
  const typed = key.slice(-TYPED_CHARACTERS)
  switch (opened) {
    case 'terms':
      return <EditTerms license={one} onClose={onClose} />
    case 'replaceKey':
      return (
        <Confirm
          {...confirm}
          label={t.replaceKey}
          title={t.replaceTitle}
          consequence={t.replaceHint}
          onConfirm={() => replaceKey.mutateAsync(input)}
          isPending={replaceKey.isPending}
        />
      )
    case 'revoke':
      return (
        <Confirm
          {...confirm}
          label={t.revoke}
          title={t.revokeTitle}
          consequence={t.revokeHint}
          typed={typed}
          onConfirm={() => revoke.mutateAsync(input)}
          isPending={revoke.isPending}
        />
      )
    case 'delete':
      return (
        <Confirm
          {...confirm}
          label={t.delete}
          title={t.deleteTitle}
          consequence={t.deleteHint}
          typed={typed}
          onConfirm={() => remove.mutateAsync(input)}
          isPending={remove.isPending}
        />
      )
    default:
      return opened satisfies never
  }
}
