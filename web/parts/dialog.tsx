import { type ReactNode, useEffect, useId, useRef } from 'react'
import { IconButton } from './button.tsx'

interface DialogProps {
  readonly title: ReactNode
  readonly onClose: () => void
  readonly children: ReactNode
}

/** Opens at once, with the focus on its title, or on what has `data-focus`; Esc, a click beside it and its button close it, and the focus goes back to where it was. */
function useModal(onClose: () => void) {
  const ref = useRef<HTMLDialogElement>(null)
  const close = useRef(onClose)
  close.current = onClose
  useEffect(() => {
    const dialog = ref.current
    if (dialog === null) return
    const before = document.activeElement
    dialog.showModal()
    dialog.querySelector<HTMLElement>('[data-focus]')?.focus()
    const closed = () => close.current()
    const beside = (event: MouseEvent) => {
      if (event.target === dialog) dialog.close()
    }
    dialog.addEventListener('close', closed)
    dialog.addEventListener('mousedown', beside)
    return () => {
      dialog.removeEventListener('close', closed)
      dialog.removeEventListener('mousedown', beside)
      if (dialog.open) dialog.close()
      if (before instanceof HTMLElement) before.focus({ preventScroll: true })
    }
  }, [])
  return { ref, close: () => ref.current?.close() }
}

/** A small dialog in the middle: keys, a fork, a token. */
export function Sheet({ title, onClose, children }: DialogProps): ReactNode {
  const { ref, close } = useModal(onClose)
  const id = useId()
  return (
    <dialog ref={ref} className="sheet" aria-labelledby={id}>
      <div className="row">
        {/* biome-ignore lint/a11y/noAutofocus: a dialog puts the focus on its title */}
        <h2 id={id} className="grow" tabIndex={-1} autoFocus>
          {title}
        </h2>
        <IconButton icon="close" label="Close" onClick={close} />
      </div>
      {children}
    </dialog>
  )
}

interface DrawerProps extends DialogProps {
  /** The line below the title: where it stands, and facts. */
  readonly line?: ReactNode
  /** Between head and body, such as tabs. */
  readonly bar?: ReactNode
  /** Names the body for readers: it can be scrolled. */
  readonly label: string
}

/** A panel over the right side. It covers, and pushes nothing. */
export function Drawer({ title, line, bar, label, onClose, children }: DrawerProps): ReactNode {
  const { ref, close } = useModal(onClose)
  const id = useId()
  return (
    <dialog ref={ref} className="drawer" aria-labelledby={id}>
      <div className="drawer-h">
        <div className="row">
          {/* biome-ignore lint/a11y/noAutofocus: a dialog puts the focus on its title */}
          <h2 id={id} tabIndex={-1} autoFocus>
            {title}
          </h2>
          <IconButton icon="close" label="Close" onClick={close} />
        </div>
        {line === undefined ? null : <div className="row drawer-line">{line}</div>}
      </div>
      {bar}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys */}
      <section className="drawer-b" tabIndex={0} aria-label={label}>
        {children}
      </section>
    </dialog>
  )
}
