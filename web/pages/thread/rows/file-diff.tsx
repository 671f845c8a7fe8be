import type { ReactNode } from 'react'
import { Icon } from '../../../parts/icon.tsx'
import type { DiffLine, FileChange } from '../state/file-changes.ts'

const SIGNS: Readonly<Record<DiffLine['kind'], string>> = { same: '', add: '+', remove: '−' }
const CLASSES: Readonly<Record<DiffLine['kind'], string>> = { same: '', add: 'add', remove: 'del' }

/** The change of a file, line by line. */
export function FileDiff({ change }: { readonly change: FileChange }): ReactNode {
  const { path, parts, added, removed } = change
  return (
    <div className="out">
      <div className="out-h">
        <Icon name="file" />
        <span className="mono cut">{path}</span>
        <span className="grow" />
        <span className="tag tag-add">+{added}</span>
        <span className="tag tag-failed">−{removed}</span>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys */}
      <section className="fd" tabIndex={0} aria-label={`Changes in ${path}`}>
        <table>
          <tbody>
            {parts.flatMap((lines, part) =>
              lines.map(({ kind, text }, at) => (
                <tr key={`${part} ${at}`} className={`${CLASSES[kind]} ${at === 0 && part > 0 ? 'fd-part' : ''}`}>
                  <td>{SIGNS[kind]}</td>
                  <td>{text}</td>
                </tr>
              )),
            )}
          </tbody>
        </table>
      </section>
    </div>
  )
}
