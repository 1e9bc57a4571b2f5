//! Tasks in the background that begin, rest, are promoted and end at given times.

use headtime_engine::{
    Approach, Arrival, Background, BackgroundLayer, Consumer, Demand, Engine, Finished, Join, Lane,
    TaskError, TaskId, TaskSpec, Tasks,
};
use headtime_sched::Passing;
use headtime_units::{Extent, Sectors, Time};
use std::fmt;

/// What happens to a task at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskChange {
    /// It begins.
    Open,
    /// Nothing is read or written for it until it is resumed.
    Suspend,
    /// It goes on.
    Resume,
    /// It is served at the cost of clients, or only beside them again.
    Promote(Option<Demand>),
    /// It ends, whatever it still wants.
    Close,
}

/// What came of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskOutcome {
    /// When it began; `None` if the run was over before.
    pub opened: Option<Time>,
    /// When it wanted nothing more; `None` if it does, or did when it was closed.
    pub done: Option<Time>,
    /// When it was closed.
    pub closed: Option<Time>,
    /// Sectors that it wanted when it began, in whole blocks.
    pub wanted: Sectors,
    /// Sectors that were read or written for it, or that clients read where that counts. Those that were wanted again count again.
    pub served: Sectors,
    /// Sectors of blocks that were written by others, and were wanted for it.
    pub changed: Sectors,
    /// Sectors of blocks that could not be read or written.
    pub failed: Sectors,
    /// Sectors that it still wanted at the end, in whole blocks.
    pub left: Sectors,
}

/// Keeps account of what tasks are told. Tasks are numbered as they are opened.
#[derive(Debug, Default)]
pub struct Account {
    of: Vec<TaskOutcome>,
}

impl Account {
    fn of(&mut self, task: TaskId) -> &mut TaskOutcome {
        &mut self.of[task.0 as usize]
    }
}

impl Consumer for Account {
    fn piece(&mut self, _now: Time, task: TaskId, extent: Extent, _data: Option<&[u8]>) {
        self.of(task).served += extent.len;
    }

    fn unreadable(&mut self, _now: Time, task: TaskId, extent: Extent) {
        self.of(task).failed += extent.len;
    }

    fn changed(&mut self, _now: Time, task: TaskId, extent: Extent) {
        let of = self.of(task);
        of.changed += extent.len;
        of.done = None;
    }

    fn done(&mut self, now: Time, task: TaskId) {
        self.of(task).done = Some(now);
    }
}

/// What is to happen to the tasks of a disk, and when.
#[derive(Debug)]
pub struct TaskPlan {
    /// What each task wants.
    specs: Vec<TaskSpec>,
    /// Times, numbers of tasks, and what happens; in order of time.
    changes: Vec<(Time, usize, TaskChange)>,
}

impl TaskPlan {
    /// No tasks.
    pub fn none() -> TaskPlan {
        TaskPlan {
            specs: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// A task that begins at one time, and to which other things happen later, at times that rise. What happens to several at one time happens in
    /// the order in which they were added.
    pub fn add(
        &mut self,
        spec: TaskSpec,
        opens: Time,
        later: impl IntoIterator<Item = (Time, TaskChange)>,
    ) {
        let task = self.specs.len();
        self.specs.push(spec);
        self.changes.push((opens, task, TaskChange::Open));
        let later = later.into_iter();
        self.changes
            .extend(later.map(|(at, change)| (at, task, change)));
        self.changes.sort_by_key(|(at, _, _)| *at);
    }
}

/// Tasks in the background to which things happen at given times.
pub struct PlannedTasks<P: Passing> {
    tasks: Tasks<P, Account>,
    plan: TaskPlan,
    block: Sectors,
    /// Of the changes, the next one.
    next: usize,
    /// What each task of the plan is called, once it was opened.
    ids: Vec<Option<TaskId>>,
}

impl<P: Passing + Clone> PlannedTasks<P> {
    /// Tasks of a disk of `capacity`, which are read and written in the blocks of `options`; `None` if the model does not know where the platter is.
    ///
    /// # Errors
    ///
    /// If a task does not fit the disk: its number, and why.
    ///
    /// # Panics
    ///
    /// If a block has no sectors.
    pub fn new(
        model: P,
        capacity: Sectors,
        options: headtime_engine::FreeblockOptions,
        plan: TaskPlan,
    ) -> Result<Option<PlannedTasks<P>>, (usize, TaskError)> {
        let block = options.block;
        let Some(tasks) = Tasks::none(model, capacity, options, Account::default()) else {
            return Ok(None);
        };
        // What does not fit shows now, and not in the middle of a run.
        for (number, spec) in plan.specs.iter().enumerate() {
            tasks.ranges(spec).map_err(|error| (number, error))?;
        }
        Ok(Some(PlannedTasks {
            ids: vec![None; plan.specs.len()],
            tasks,
            plan,
            block,
            next: 0,
        }))
    }

    /// Does what is to happen by now.
    fn go_on(&mut self, now: Time) {
        while let Some(&(at, task, change)) = self.plan.changes.get(self.next)
            && at <= now
        {
            self.next += 1;
            self.change(now, task, change);
        }
    }

    fn change(&mut self, now: Time, task: usize, change: TaskChange) {
        if change == TaskChange::Open {
            self.tasks.consumer().of.push(TaskOutcome {
                opened: Some(now),
                ..TaskOutcome::default()
            });
            let spec = self.plan.specs[task].clone();
            let id = self.tasks.open(spec).expect("it fits");
            let wanted = self.left(id);
            let outcome = self.tasks.consumer().of(id);
            outcome.wanted = wanted;
            outcome.done = (wanted == Sectors::ZERO).then_some(now);
            self.ids[task] = Some(id);
            return;
        }
        let Some(id) = self.ids[task] else { return };
        match change {
            TaskChange::Open => {}
            TaskChange::Suspend => self.tasks.suspend(id),
            TaskChange::Resume => self.tasks.resume(id),
            TaskChange::Promote(demand) => self.tasks.promote(id, demand),
            TaskChange::Close => {
                if let Some(left) = self.tasks.close(id) {
                    let left = self.sectors(left);
                    let outcome = self.tasks.consumer().of(id);
                    (outcome.left, outcome.closed) = (left, Some(now));
                }
            }
        }
    }

    fn sectors(&self, blocks: u64) -> Sectors {
        Sectors::new(blocks * self.block.get())
    }

    fn left(&self, id: TaskId) -> Sectors {
        self.sectors(self.tasks.left(id).unwrap_or(0))
    }

    /// What came of each task, in the order of the plan.
    pub fn outcomes(&mut self) -> Vec<TaskOutcome> {
        let ids = self.ids.clone();
        let outcome = |id: Option<TaskId>| {
            let Some(id) = id else {
                return TaskOutcome::default();
            };
            let left = self.left(id);
            let mut outcome = *self.tasks.consumer().of(id);
            if outcome.closed.is_none() {
                outcome.left = left;
            }
            outcome
        };
        ids.into_iter().map(outcome).collect()
    }
}

impl<P: Passing + Clone + 'static> BackgroundLayer for PlannedTasks<P> {
    type Under = Tasks<P, Account>;

    fn under(&self) -> &Self::Under {
        &self.tasks
    }

    fn under_mut(&mut self) -> &mut Self::Under {
        &mut self.tasks
    }

    fn joins(
        &mut self,
        now: Time,
        engine: &Engine,
        approach: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        self.go_on(now);
        self.tasks.joins(now, engine, approach)
    }

    fn next_wakeup(&self, engine: &Engine) -> Option<Time> {
        let next = self.plan.changes.get(self.next).map(|(at, _, _)| *at);
        let wakes = self.tasks.next_wakeup(engine);
        wakes.into_iter().chain(next).min()
    }

    fn is_over(&self) -> bool {
        self.next == self.plan.changes.len() && self.tasks.is_over()
    }

    fn seen(&mut self, now: Time, done: &Finished) {
        self.go_on(now);
        self.tasks.seen(now, done);
    }

    fn finished(&mut self, now: Time, done: &Finished, data: Option<&[u8]>) {
        self.go_on(now);
        self.tasks.finished(now, done, data);
    }
}

impl<P: Passing> fmt::Debug for PlannedTasks<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedTasks")
            .field("tasks", &self.tasks)
            .field("plan", &self.plan)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
