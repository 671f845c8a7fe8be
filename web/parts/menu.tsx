import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { IconButton, Key } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'

/** One thing of a menu; `line` begins a new part. */
export interface MenuItem {
  readonly icon: IconName
  readonly label: string
  readonly hint?: string
  readonly keyCap?: string
  readonly isFirstOfPart?: boolean
  readonly isOff?: boolean
  readonly onSelect: () => void
}

interface MenuProps {
  /** Names the button and the menu. */
  readonly label: string
  readonly items: () => readonly MenuItem[]
  /** Another button than the three dots. */
  readonly button?: (props: { readonly isOpen: boolean; readonly toggle: () => void; readonly id: string }) => ReactNode
}

/** A button with a menu. The items are made when it opens. */
export function Menu({ label, items, button }: MenuProps): ReactNode {
  const [isOpen, setOpen] = useState(false)
  const place = useRef<HTMLSpanElement>(null)
  const id = useId()
  const close = (isFocused: boolean) => {
    setOpen(false)
    if (isFocused) place.current?.querySelector('button')?.focus({ preventScroll: true })
  }
  const toggle = () => setOpen((was) => !was)
  return (
    <span className="menu-place" ref={place}>
      {button === undefined ? (
        <IconButton
          icon="dots"
          label={label}
          isSmall
          aria-haspopup="menu"
          aria-expanded={isOpen}
          aria-controls={isOpen ? id : undefined}
          onClick={toggle}
        />
      ) : (
        button({ isOpen, toggle, id })
      )}
      {isOpen ? <OpenMenu id={id} label={label} items={items()} place={place} onClose={close} /> : null}
    </span>
  )
}

interface OpenMenuProps {
  readonly id: string
  readonly label: string
  readonly items: readonly MenuItem[]
  readonly place: { readonly current: HTMLElement | null }
  readonly onClose: (isFocused: boolean) => void
}

const MARGIN = 72

function OpenMenu({ id, label, items, place, onClose }: OpenMenuProps): ReactNode {
  const ref = useRef<HTMLDivElement>(null)
  const [isUp, setUp] = useState(false)
  useEffect(() => {
    const menu = ref.current
    if (menu === null) return
    if (menu.getBoundingClientRect().bottom > innerHeight - MARGIN) setUp(true)
    menu.querySelector<HTMLElement>('[role=menuitem]')?.focus({ preventScroll: true })
    const outside = (event: MouseEvent) => {
      if (event.target instanceof Node && place.current?.contains(event.target) !== true) onClose(false)
    }
    document.addEventListener('mousedown', outside)
    return () => document.removeEventListener('mousedown', outside)
  }, [place, onClose])
  return (
    <div
      ref={ref}
      id={id}
      className={`menu ${isUp ? 'menu-up' : ''}`}
      role="menu"
      tabIndex={-1}
      aria-label={label}
      onKeyDown={(event) => moveIn(event, onClose)}
    >
      {items.map(({ icon, label: words, hint, keyCap, isFirstOfPart, isOff, onSelect }) => (
        <button
          key={words}
          type="button"
          role="menuitem"
          disabled={isOff}
          className={isFirstOfPart === true ? 'menu-part' : undefined}
          onClick={() => {
            onClose(true)
            onSelect()
          }}
        >
          <Icon name={icon} />
          <span>
            {words}
            {hint === undefined ? null : <small>{hint}</small>}
          </span>
          {keyCap === undefined ? null : <Key>{keyCap}</Key>}
        </button>
      ))}
    </div>
  )
}

function moveIn(event: KeyboardEvent<HTMLElement>, onClose: (isFocused: boolean) => void): void {
  if (event.key === 'Escape' || event.key === 'Tab') {
    if (event.key === 'Escape') event.preventDefault()
    event.stopPropagation()
    onClose(true)
    return
  }
  const step = { ArrowDown: 1, ArrowUp: -1, Home: 0, End: 0 }[event.key]
  if (step === undefined) return
  event.preventDefault()
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>('[role=menuitem]:not([disabled])')]
  const now = all.indexOf(document.activeElement as HTMLElement)
  const next = event.key === 'Home' ? 0 : event.key === 'End' ? all.length - 1 : now + step
  all.at(next % all.length)?.focus()
}
