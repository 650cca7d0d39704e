package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"companyscore/bench/report"
)

// Watcher samples processes once a second from /proc. It has no samples on systems
// without /proc.
type Watcher struct {
	pids  func() map[string]int
	began time.Time
	mu    sync.Mutex
	seen  map[string]*watched
	order []string
	whole []wholeSample
	stop  context.CancelFunc
	done  chan struct{}
}

// watched is one process by name. A restart changes its pid.
type watched struct {
	pid     int
	used    time.Duration // CPU of earlier pids
	last    time.Duration // CPU of this pid
	samples []processSample
}

type processSample struct {
	at  time.Time
	cpu time.Duration // since the start of the watch
	rss int64
}

// wholeSample is the CPU time of the whole machine, in ticks summed over all cores.
type wholeSample struct {
	at                 time.Time
	busy, steal, total float64
	ours               time.Duration // the part of the watched processes and this one
}

// Watch starts to sample processes. It calls pids before each sample.
func Watch(pids func() map[string]int) *Watcher {
	ctx, stop := context.WithCancel(context.Background())
	w := &Watcher{pids: pids, began: time.Now(), seen: make(map[string]*watched), stop: stop, done: make(chan struct{})}
	w.sample()
	go func() {
		defer close(w.done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.sample()
			}
		}
	}()
	return w
}

// Close ends sampling.
func (w *Watcher) Close() {
	w.stop()
	<-w.done
}

// sample adds one sample of each process and of the machine.
func (w *Watcher) sample() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	ours := processCPU(os.Getpid())
	pids := w.pids()
	names := make([]string, 0, len(pids))
	for name := range pids {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		pid := pids[name]
		p, ok := w.seen[name]
		if !ok {
			p = &watched{pid: pid, used: -processCPU(pid)}
			w.seen[name] = p
			w.order = append(w.order, name)
		}
		if p.pid != pid {
			p.used, p.pid, p.last = p.used+p.last, pid, 0
		}
		cpu := processCPU(pid)
		if cpu > 0 {
			p.last = cpu
		}
		p.samples = append(p.samples, processSample{at: now, cpu: p.used + p.last, rss: ResidentBytes(pid)})
		ours += cpu
	}
	if whole, ok := machineCPU(); ok {
		whole.at, whole.ours = now, ours
		w.whole = append(w.whole, whole)
	}
}

// report returns the use of CPU and memory between two instants.
func (w *Watcher) report(begin, end time.Time, answers int64) *report.Server {
	w.sample()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &report.Server{Processes: []report.Process{}}
	total := time.Duration(0)
	for _, name := range w.order {
		samples := within(w.seen[name].samples, begin, end, func(p processSample) time.Time { return p.at })
		if len(samples) < 2 {
			continue
		}
		first, last := samples[0], samples[len(samples)-1]
		cpu, wall := last.cpu-first.cpu, last.at.Sub(first.at)
		total += cpu
		p := report.Process{
			Name: name, CPU: cpu.Seconds(), CPUShare: cpu.Seconds() / wall.Seconds(),
			RSSStart: first.rss, RSSThird: samples[len(samples)/3].rss, RSSThirds: samples[2*len(samples)/3].rss, RSSEnd: last.rss,
			Slope: slope(samples[len(samples)/3:]),
		}
		for i, sample := range samples {
			out := report.Sample{At: sample.at.Sub(begin).Seconds(), RSS: sample.rss}
			if i > 0 {
				out.CPU = (sample.cpu - samples[i-1].cpu).Seconds() / sample.at.Sub(samples[i-1].at).Seconds()
			}
			p.Samples = append(p.Samples, out)
		}
		s.Processes = append(s.Processes, p)
	}
	if answers > 0 {
		s.CPUPerRequest = float64(total.Microseconds()) / float64(answers)
	}
	whole := within(w.whole, begin, end, func(s wholeSample) time.Time { return s.at })
	if n := len(whole); n >= 4 {
		s.OtherFirst, _ = others(whole[0], whole[n/3])
		s.OtherLast, _ = others(whole[n-1-n/3], whole[n-1])
		_, s.Steal = others(whole[0], whole[n-1])
	}
	return s
}

// within returns the samples between two instants and the last one before begin.
func within[T any](samples []T, begin, end time.Time, at func(T) time.Time) []T {
	from, to := 0, len(samples)
	for i, s := range samples {
		if !at(s).After(begin) {
			from = i
		}
		if at(s).After(end.Add(time.Second / 2)) {
			to = i
			break
		}
	}
	return samples[from:max(from, to)]
}

// others returns two shares of the machine's CPU time between two samples: that of
// processes that are not watched, and that taken by a hypervisor.
func others(a, b wholeSample) (other, steal float64) {
	total := b.total - a.total
	if total <= 0 {
		return 0, 0
	}
	ours := (b.ours - a.ours).Seconds() * ticksPerSecond
	return max(0, (b.busy-a.busy-ours)/total), (b.steal - a.steal) / total
}

// slope returns the trend of memory in bytes per minute, by least squares.
func slope(samples []processSample) float64 {
	n := float64(len(samples))
	var x, y, xx, xy float64
	for _, s := range samples {
		at, rss := s.at.Sub(samples[0].at).Minutes(), float64(s.rss)
		x, y, xx, xy = x+at, y+rss, xx+at*at, xy+at*rss
	}
	if d := n*xx - x*x; d > 0 {
		return (n*xy - x*y) / d
	}
	return 0
}

// ticksPerSecond is the number of ticks of /proc per second. It is 100 on all
// architectures.
const ticksPerSecond = 100

// processCPU returns the CPU time of a process so far, 0 if the process has ended.
func processCPU(pid int) time.Duration {
	if used, ok := exactCPU(pid); ok {
		return used
	}
	return procCPU(pid)
}

// procCPU reads the CPU time of a process from /proc, with a resolution of one tick.
func procCPU(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in brackets may contain brackets, so the fields start after the last one.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(user+system) * time.Second / ticksPerSecond
}

// ResidentBytes returns the resident memory of a process, 0 if the process has ended.
func ResidentBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// machineCPU reads the CPU time of all cores so far. It returns false without /proc/stat.
func machineCPU() (wholeSample, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return wholeSample{}, false
	}
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	fields := strings.Fields(string(line))
	if len(fields) < 9 || fields[0] != "cpu" {
		return wholeSample{}, false
	}
	var s wholeSample
	for i, field := range fields[1:9] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return wholeSample{}, false
		}
		s.total += n
		switch i {
		case 3, 4: // idle, waiting for a disk
		case 7:
			s.steal += n
		default:
			s.busy += n
		}
	}
	return s, true
}

// CPU returns the CPU time of processes so far, without their children.
func CPU(pids ...int) time.Duration {
	used := time.Duration(0)
	for _, pid := range pids {
		used += processCPU(pid)
	}
	return used
}

// Children returns the pids of the children of all threads of a process.
func Children(pid int) []int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var pids []int
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
