import type { License } from '@keyward/contract'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'

import { RenewDialog } from './dialog.tsx'

/** A button that opens the window for a later end of a license. */
export function Renew({ license, size }: { license: License; size?: string }) {
  const [opened, { open, close }] = useDisclosure(false)
  return (
    <>
      <Button variant="default" onClick={open} {...(size !== undefined && { size })}>
        Renew
      </Button>
      {opened && <RenewDialog license={license} onClose={close} />}
    </>
  )
}
