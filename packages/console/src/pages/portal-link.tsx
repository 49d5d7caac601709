/** The actions of a customer's page that open the portal (docs/api.md#u3). */

import { type PortalAction, portalSessions } from '@keyward/contract/management/portal'
import { Menu } from '@mantine/core'

import { useCall } from '../api/hooks.ts'
import { SecretWindow } from '../parts/secret-window.tsx'

const ALL_ACTIONS: PortalAction[] = ['release', 'files']

/** The items of the menu. `onLink` receives a link for the customer. */
export function PortalItems({ customerId, onLink }: { customerId: string; onLink: (url: string) => void }) {
  const link = useCall(portalSessions.createPortalSession)
  const urlFor = async (preview: boolean) => {
    const body = { customerId, actions: ALL_ACTIONS, preview }
    return (await link.mutateAsync({ body })).url ?? ''
  }
  return (
    <>
      <Menu.Item onClick={() => void urlFor(false).then(onLink, () => undefined)}>Copy portal link</Menu.Item>
      <Menu.Item
        onClick={() =>
          void urlFor(true).then(
            (url) => window.open(url, '_blank'),
            () => undefined,
          )
        }
      >
        View as the customer sees it
      </Menu.Item>
      <Menu.Divider />
    </>
  )
}

export function PortalLinkWindow({ url, onClose }: { url: string; onClose: () => void }) {
  return (
    <SecretWindow
      title="Portal link"
      secret={url}
      hint="Send this link to the customer. It works once, within 15 minutes. The customer sees its licenses, and can free slots and get files for machines without a network."
      done="Done"
      onClose={onClose}
    />
  )
}
