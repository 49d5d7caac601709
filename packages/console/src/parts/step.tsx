/** One step of a way that is shown as a list, with a mark that turns green. */

import { IconCheck } from '@tabler/icons-react'
import type { ReactNode } from 'react'

export function Step({
  title,
  state,
  action,
  children,
}: {
  title: string
  /** A step that is open has no mark, and one that is `now` waits for something. */
  state: 'open' | 'now' | 'done'
  action?: ReactNode
  children?: ReactNode
}) {
  return (
    <li data-state={state}>
      <span className="flow-mark" aria-hidden="true">
        {state === 'done' ? (
          <IconCheck size={14} stroke={2.5} />
        ) : state === 'now' ? (
          <span className="flow-wait" />
        ) : null}
      </span>
      <div className="flow-body">
        <div className="flow-head">
          <h2>
            {title}
            {state === 'done' && <span className="vh"> (done)</span>}
          </h2>
          {action}
        </div>
        {children}
      </div>
    </li>
  )
}
