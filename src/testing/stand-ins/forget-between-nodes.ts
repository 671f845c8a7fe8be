import { callBeforeNodes } from '../../core/runtime/runtime.ts'
import type { LocalStore } from '../../core/store/store.ts'

/**
 * From now on every runtime of this process forgets, before each node that it runs, all that is not in the rows, as a new
 * process would. A test that still passes keeps nothing in memory that a restart would lose.
 */
export function forgetBetweenNodes(): void {
  callBeforeNodes((runtime) => {
    const { reopen } = runtime.store as Partial<LocalStore>
    reopen?.()
    runtime.dropCaches()
  })
}
