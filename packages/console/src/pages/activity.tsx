/** The activity of all licenses. */

import { activityEntry } from '@keyward/contract/management/activity'

import { useList } from '../api/hooks.ts'
import { ActivityTable } from '../parts/activity-table.tsx'
import { Screen } from '../parts/parts.tsx'
import { text } from '../text.ts'

export default function Activity() {
  return (
    <Screen title={text.activity.title}>
      <ActivityTable list={useList('/activity', activityEntry)} empty={text.activity.empty} showsLicense />
    </Screen>
  )
}
