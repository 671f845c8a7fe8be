import { useCounter } from './support/counter.ts'
import { twoOwnersSuite } from './support/suites/two-owners.ts'

twoOwnersSuite({ on: '', counter: await useCounter(), store: 'sqlite', isSample: false })
