/**
 * A panel at the end of the screen that explains one row of a list. The list stays usable beside it. The panel focuses its heading when it
 * opens, and returns the focus to the row when it closes.
 */

import { ActionIcon } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconX } from '@tabler/icons-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'

export function SidePanel({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null)
  const [opener] = useState(() => document.activeElement)
  useEffect(() => {
    heading.current?.focus()
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true })
    }
  }, [opener])
  useHotkeys([['Escape', onClose]])
  return (
    <aside className="panel" aria-label={title}>
      <div className="panel-head">
        <h2 ref={heading} tabIndex={-1} className="card-title">
          {title}
        </h2>
        <ActionIcon variant="subtle" color="gray" aria-label="Close" onClick={onClose}>
          <IconX size={16} />
        </ActionIcon>
      </div>
      <div className="panel-body">{children}</div>
    </aside>
  )
}
