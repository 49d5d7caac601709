/** A window above the screen. It is open while it is rendered. When it closes, the element that opened it gets the focus back. */

import { Modal, type ModalProps } from '@mantine/core'
import { useEffect, useState } from 'react'

import { text } from '../text.ts'

export function Window(props: Omit<ModalProps, 'opened'>) {
  const [opener] = useState(() => document.activeElement)
  useEffect(
    () => () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true })
    },
    [opener],
  )
  return <Modal opened returnFocus={false} closeButtonProps={{ 'aria-label': text.close }} {...props} />
}
