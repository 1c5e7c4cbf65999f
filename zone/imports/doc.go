// Package imports reads zones as Fibre Channel switches print them (Brocade's cfgshow and
// zonecreate commands, the running configuration of Cisco MDS) into a plan, and the map that
// says which member of ours stands for which WWPN or port there. With any error there is no plan:
// Errors names the line of each. Pure code.
package imports
