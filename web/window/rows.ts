// `j` and `k`: from row to row, in the order of the page. Rows have `data-nav`.

import { useKeys } from './keys.ts'

export function useRowKeys(): void {
  useKeys({ j: () => move(1), k: () => move(-1), Enter: (event) => open(event) })
}

function move(by: 1 | -1): void {
  const all = [...document.querySelectorAll<HTMLElement>('#main [data-nav]')].filter((one) => one.offsetParent !== null)
  const now = all.indexOf(document.activeElement?.closest<HTMLElement>('[data-nav]') as HTMLElement)
  const next = all[now < 0 ? firstInSight(all) : Math.max(0, Math.min(all.length - 1, now + by))]
  if (next === undefined) return
  focusRow(next)
  next.scrollIntoView({ block: 'nearest' })
}

function firstInSight(all: readonly HTMLElement[]): number {
  return Math.max(
    0,
    all.findIndex((one) => one.getBoundingClientRect().top >= 0),
  )
}

/** Puts the focus on the button that opens a row, or on the row. */
export function focusRow(row: HTMLElement): void {
  const button = row.querySelector<HTMLElement>(':scope > .call-r .open, :scope > .sub-k .open')
  ;(button ?? row).focus({ preventScroll: true })
}

/** On a row that has no button of its own, Enter follows its link. */
function open(event: KeyboardEvent): void {
  const { target } = event
  if (!(target instanceof HTMLElement)) return
  if (target.matches('button, a')) target.click()
  else if (target.matches('[data-nav]')) target.querySelector<HTMLElement>('a, button')?.click()
}
