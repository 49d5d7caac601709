/**
 * Shows lists as tables with links, sortable columns, selectable rows, and a button that loads more rows. On narrow screens, the stylesheet
 * stacks the cells of a row. Screen readers would then ignore the table, so it has explicit ARIA roles.
 */

import { Button, Group, Paper, Text, UnstyledButton, VisuallyHidden } from '@mantine/core'
import { IconArrowDown, IconArrowsSort, IconArrowUp } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { Link } from 'wouter'

import { text } from '../text.ts'
import { ErrorState, LoadingRows, StaleNotice, State } from './states.tsx'

export interface Column<Item> {
  title: string
  cell: (item: Item) => ReactNode
  isNumber?: boolean
  /** Whether narrow screens that show a table omit the column. */
  isMinor?: boolean
  /** The name of the field that the API sorts by. */
  sortKey?: string
}

export interface ListState<Item> {
  items: readonly Item[]
  error: Error | null
  isPending: boolean
  hasMore: boolean
  isLoadingMore: boolean
  loadMore: () => void
  /** Reads the list again after an error. */
  retry: () => void
}

export interface Sorting {
  /** The name of the field that the list is sorted by, or null for the default order. */
  by: string | null
  order: 'asc' | 'desc'
  onSort: (by: string, order: 'asc' | 'desc') => void
}

export interface Selection<Item> {
  ids: ReadonlySet<string>
  onChange: (ids: ReadonlySet<string>) => void
  /** Returns the text that names a row to screen readers. */
  nameOf: (item: Item) => string
}

interface ListTableProps<Item> {
  list: ListState<Item>
  columns: readonly Column<Item>[]
  href?: (item: Item) => string
  empty: ReactNode
  /** The buttons below `empty`. */
  create?: ReactNode
  label: string
  sorting?: Sorting
  selection?: Selection<Item> | undefined
  hasTwoLines?: boolean
}

function toggled(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(ids)
  if (!next.delete(id)) next.add(id)
  return next
}

function isSortable<Item>({ sortKey }: Column<Item>, sorting: Sorting | undefined): boolean {
  return sorting !== undefined && sortKey !== undefined
}

/** The title of a column, as a button if the API can sort by the column. */
function Heading<Item>({ column: { title, sortKey }, sorting }: { column: Column<Item>; sorting?: Sorting }) {
  if (title === text.actions) return <VisuallyHidden>{title}</VisuallyHidden>
  if (sorting === undefined || sortKey === undefined) return title
  const isActive = sorting.by === sortKey
  const Icon = isActive ? (sorting.order === 'asc' ? IconArrowUp : IconArrowDown) : IconArrowsSort
  return (
    <UnstyledButton
      className="sort"
      onClick={() => sorting.onSort(sortKey, isActive && sorting.order === 'desc' ? 'asc' : 'desc')}
    >
      {title}
      <Icon size={14} stroke={1.7} aria-hidden="true" opacity={isActive ? 1 : 0.45} />
    </UnstyledButton>
  )
}

function Head<Item extends { id: string }>({ list, columns, sorting, selection }: ListTableProps<Item>) {
  const all = list.items.map(({ id }) => id)
  const chosen = all.filter((id) => selection?.ids.has(id)).length
  return (
    <thead role="rowgroup">
      <tr role="row">
        {selection && (
          <th role="columnheader" className="select-column">
            <input
              type="checkbox"
              className="select"
              aria-label="Select all"
              checked={chosen === all.length}
              ref={(box) => {
                if (box) box.indeterminate = chosen > 0 && chosen < all.length
              }}
              onChange={() => selection.onChange(new Set(chosen === all.length ? [] : all))}
            />
          </th>
        )}
        {columns.map((column) => (
          <th
            key={column.title}
            role="columnheader"
            className={[
              column.isNumber === true ? 'number' : '',
              column.isMinor === true ? 'minor' : '',
              isSortable(column, sorting) ? 'sortable' : '',
            ].join(' ')}
            {...(sorting !== undefined &&
              sorting.by === column.sortKey && {
                'aria-sort': sorting.order === 'asc' ? ('ascending' as const) : ('descending' as const),
              })}
          >
            <Heading column={column} {...(sorting && { sorting })} />
          </th>
        ))}
      </tr>
    </thead>
  )
}

function Rows<Item extends { id: string }>({ list, columns, href, selection }: ListTableProps<Item>) {
  return (
    <tbody role="rowgroup">
      {list.items.map((item) => (
        <tr
          key={item.id}
          role="row"
          data-opens={href && ''}
          {...(selection?.ids.has(item.id) === true && { 'data-selected': true })}
        >
          {selection && (
            <td role="cell" className="select-cell">
              <input
                type="checkbox"
                className="select"
                aria-label={`Select ${selection.nameOf(item)}`}
                checked={selection.ids.has(item.id)}
                onChange={() => selection.onChange(toggled(selection.ids, item.id))}
              />
            </td>
          )}
          {columns.map(({ title, cell, isNumber, isMinor }, index) => (
            <td
              key={title}
              role="cell"
              data-label={index === 0 || title === text.actions ? undefined : title}
              className={[
                index === 0 ? 'first' : '',
                isNumber === true ? 'number' : '',
                isMinor === true ? 'minor' : '',
                title === text.actions ? 'action-cell' : '',
              ].join(' ')}
            >
              {index === 0 && href ? (
                <Link href={href(item)} className="row-link">
                  {cell(item)}
                </Link>
              ) : (
                cell(item)
              )}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  )
}

/**
 * A list as a table in a card. `href` makes the first cell of each row a link that covers the row. `empty` is shown instead of a table
 * without rows. After an error, the rows that were read before stay.
 */
export function ListTable<Item extends { id: string }>(props: ListTableProps<Item>) {
  const { list, empty, create, label, hasTwoLines } = props
  if (list.error && list.items.length === 0)
    return (
      <div className="card">
        <ErrorState error={list.error} retry={list.retry} />
      </div>
    )
  if (list.isPending)
    return (
      <div className="card">
        <LoadingRows />
      </div>
    )
  if (list.items.length === 0)
    return (
      <div className="card">
        <State>
          {empty}
          {create}
        </State>
      </div>
    )
  return (
    <div className="card">
      {list.error && <StaleNotice error={list.error} retry={list.retry} />}
      <div className="list-frame" tabIndex={0} role="group" aria-label={label}>
        <table className="list" role="table" aria-label={label} data-lines={hasTwoLines === true ? 2 : undefined}>
          <Head {...props} />
          <Rows {...props} />
        </table>
      </div>
      {list.hasMore && (
        <div className="list-foot">
          <span>{`Showing the first ${list.items.length.toLocaleString()}`}</span>
          <Button size="xs" variant="default" onClick={list.loadMore} loading={list.isLoadingMore}>
            Load more
          </Button>
        </div>
      )}
    </div>
  )
}

/** The bar of actions on the selected rows. `offer` follows the number, and selects more rows. */
export function SelectionBar({
  count,
  offer,
  onClear,
  children,
}: {
  count: number
  offer?: ReactNode
  onClear: () => void
  children: ReactNode
}) {
  const selected = `${count.toLocaleString()} selected`
  return (
    <Paper withBorder p="xs" className="selected" role="region" aria-label={selected}>
      <Group justify="space-between">
        <Group gap="xs">
          <Text size="sm" fw={600}>
            {selected}
          </Text>
          {offer}
        </Group>
        <Group gap="xs">
          <Button size="xs" variant="subtle" color="gray" onClick={onClear}>
            Clear the selection
          </Button>
          {children}
        </Group>
      </Group>
    </Paper>
  )
}
