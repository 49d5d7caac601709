/** A window above the screen. It is open while it is rendered. When it closes, the element that opened it gets the focus back. */

import { Modal, type ModalProps } from '@mantine/core'
import { useEffect, useState } from 'react'

export function Window(props: Omit<ModalProps, 'opened'>) {
  const [opener] = useState(() => document.activeElement)
  useEffect(
    () => () => {
      // The focus is on the body when the window that closes had it. A window that opened meanwhile keeps the focus.
      const isLost = document.activeElement === document.body
      if (isLost && opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true })
    },
    [opener],
  )
  return <Modal opened returnFocus={false} closeButtonProps={{ 'aria-label': 'Close' }} {...props} />
}
