import type { License } from '@keyward/contract'
import { lazy, Suspense } from 'react'

import type { Opened } from './dialogs.tsx'

/** Loaded when a person opens one, because their fields are large. */
const Dialogs = lazy(async () => ({ default: (await import('./dialogs.tsx')).Dialogs }))
const RenewWindow = lazy(async () => ({ default: (await import('./renew-window.tsx')).RenewWindow }))

interface Props {
  license: License
  onClose: () => void
}

/** The window of an action that needs fields or a confirmation. */
export function Dialog(props: Props & { opened: Opened }) {
  return (
    <Suspense>
      <Dialogs {...props} />
    </Suspense>
  )
}

export function RenewDialog(props: Props) {
  return (
    <Suspense>
      <RenewWindow {...props} />
    </Suspense>
  )
}
