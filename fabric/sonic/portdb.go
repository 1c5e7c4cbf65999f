package sonic

import (
	"time"

	"github.com/openinof/inof/fabric"
)

// A port's administrative state is PORT|name admin_status in CONFIG_DB. portmgrd brings it to the
// kernel's interface and to APPL_DB, orchagent from there to the ASIC: ASIC_DB has what was
// programmed, PORT_TABLE oper_status of APPL_DB what the ASIC then says of the link.

// ourPorts is a table of our own in CONFIG_DB: which ports we have shut, by whose wish. It stands
// beside PORT because the model of PORT refuses fields that it does not know.
const ourPorts = "INOF_PORT|"

// Who may shut a port: fields of ourPorts.
const (
	byErrorDown = "error-down"
	byFence     = "fence"
)

// portDB reads and changes the state of ports.
type portDB struct{ config, appl, counters, asic *db }

// portRow is one port in the databases. A word that the databases do not have is empty.
type portRow struct {
	there bool              // in CONFIG_DB
	want  string            // admin_status of CONFIG_DB
	asic  string            // admin state of the ASIC's port, true or false
	oper  string            // oper_status of APPL_DB
	ours  map[string]string // who of us has shut it
}

// of returns the state of a port as kernel and switch together see it: whichever says first that
// the link is down counts. Shut is what is shut in the ASIC.
func (r *portRow) of(p fabric.Port) fabric.Port {
	if r.asic != "" {
		p.AdminUp = r.asic == "true"
	}
	p.Carrier = p.Carrier && p.AdminUp && r.oper != "down"
	return p
}

// is reports whether the ASIC's port is known to be open (up) or shut.
func (r *portRow) is(up bool) bool {
	if r.asic == "" { // this ASIC says nothing of it
		return up || r.oper == "down"
	}
	return (r.asic == "true") == up
}

// mine reports whether the port is shut, and by us.
func (r *portRow) mine(who string) bool { return r.want == "down" && r.ours[who] != "" }

// read reads the rows of ports.
func (d *portDB) read(names []string) (map[string]portRow, error) {
	out := make(map[string]portRow, len(names))
	if len(names) == 0 {
		return out, nil
	}
	oids, err := d.counters.all([][]string{append([]string{"HMGET", "COUNTERS_PORT_NAME_MAP"}, names...)})
	if err != nil {
		return nil, err
	}
	var config, appl, asic [][]string
	for i, n := range names {
		config = append(config, []string{"HMGET", "PORT|" + n, "admin_status", "lanes"}, []string{"HMGET", ourPorts + n, byErrorDown, byFence})
		appl = append(appl, []string{"HMGET", "PORT_TABLE:" + n, "oper_status"})
		asic = append(asic, []string{"HMGET", "ASIC_STATE:SAI_OBJECT_TYPE_PORT:" + at(oids[0], i).text, "SAI_PORT_ATTR_ADMIN_STATE"})
	}
	var answers [3][][]value
	for i, ask := range []struct {
		db       *db
		commands [][]string
	}{{d.config, config}, {d.appl, appl}, {d.asic, asic}} {
		if answers[i], err = ask.db.all(ask.commands); err != nil {
			return nil, err
		}
	}
	for i, n := range names {
		row, marks := answers[0][2*i], answers[0][2*i+1]
		r := portRow{there: at(row, 0).ok || at(row, 1).ok, want: at(row, 0).text, oper: at(answers[1][i], 0).text, asic: at(answers[2][i], 0).text, ours: map[string]string{}}
		for j, who := range []string{byErrorDown, byFence} {
			if v := at(marks, j); v.ok {
				r.ours[who] = v.text
			}
		}
		out[n] = r
	}
	return out, nil
}

// shut shuts a port. One that another program has shut already is not marked as ours.
func (d *portDB) shut(name, who string, r *portRow, now time.Time) error {
	var commands [][]string
	if r.want != "down" || len(r.ours) > 0 {
		commands = append(commands, []string{"HSET", ourPorts + name, who, now.UTC().Format(time.RFC3339)})
	}
	_, err := d.config.all(append(commands, []string{"HSET", "PORT|" + name, "admin_status", "down"}))
	return err
}

// open ends a shut; the port opens unless another of us holds it.
func (d *portDB) open(name, who string, r *portRow) error {
	commands := [][]string{{"HDEL", ourPorts + name, who}}
	held := len(r.ours)
	if r.ours[who] != "" {
		held--
	}
	if held == 0 {
		commands = append(commands, []string{"HSET", "PORT|" + name, "admin_status", "up"})
	}
	_, err := d.config.all(commands)
	return err
}
